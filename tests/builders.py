"""Small specs, networks and batches that several tests need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from lbc.behavior import PolicyHyperParameters, TargetPolicy, build_mapping, build_target
from lbc.config import (
    ActorConfig,
    BehaviorConfig,
    BufferConfig,
    Config,
    ControllerConfig,
    EnvironmentConfig,
    LearnerConfig,
    ModelConfig,
    PopulationConfig,
    RunConfig,
    TargetConfig,
)
from lbc.learner import Learner
from lbc.models import PolicyNetwork
from lbc.types import Batch, EnvironmentSpec

VECTOR = EnvironmentSpec("vector", (4,), np.float32, num_actions=3)
SMALL = ModelConfig(torso="mlp", torso_units=8, lstm_units=6, head_units=5)


def network(
    spec: EnvironmentSpec = VECTOR,
    model: ModelConfig = SMALL,
    target: TargetConfig | None = None,
    seed: int = 0,
    **model_options,
) -> PolicyNetwork:
    torch.manual_seed(seed)
    return PolicyNetwork(spec, replace(model, **model_options), target or TargetConfig("decoupled")).double()


def target_of(net: PolicyNetwork) -> TargetPolicy:
    return build_target(net.target, build_mapping(BehaviorConfig(), 1), 1)


def learner(
    net: PolicyNetwork,
    discount: float = 0.9,
    shaping: str = "identity",
    bonus: float | None = None,
    **options,
) -> Learner:
    """A learner of policy 0 that trains at full rate from the first update; bonus: its own, of entropy."""
    defaults = {"warmup_steps": 0, "learning_rate_schedule": "constant", "weight_decay": 0.0}
    config = LearnerConfig(**(defaults | options))
    policy = PolicyHyperParameters(0, discount, shaping, bonus)
    return Learner(policy, net, config, net.target, target_of(net))


def batch(
    length: int = 6, sequences: int = 3, burn_in: int = 0, seed: int = 0, ends: float = 0.0, units: int = 6
) -> Batch:
    """Random rows for VECTOR, one policy: `length` trained rows and one to bootstrap from.

    ends: chance of an end per row; every other one is a termination.  Rewards at first rows are 0.
    """
    rng = np.random.default_rng(seed)
    rows = burn_in + length + 1
    end = rng.random((rows, sequences)) < ends
    end[1:] &= ~end[:-1]
    first = np.concatenate([np.zeros((1, sequences), bool), end[:-1]])
    terminated = end & (rng.random(end.shape) < 0.5)
    reward = np.where(first, 0.0, rng.normal(size=end.shape))
    log_mu = torch.log_softmax(torch.from_numpy(rng.normal(size=(rows, sequences, 3))), -1)
    return Batch(
        frame=torch.from_numpy(rng.normal(size=(rows, sequences, 4))),
        since_first=torch.zeros(rows, sequences, dtype=torch.int64),  # one frame is a whole observation
        first=torch.from_numpy(first),
        reward=torch.from_numpy(reward),
        terminated=torch.from_numpy(terminated),
        action=torch.from_numpy(rng.integers(0, 3, (rows, sequences))),
        previous_action=torch.from_numpy(rng.integers(0, 3, (rows, sequences))),
        log_mu=log_mu,
        log_pi=torch.from_numpy(np.log(rng.uniform(0.1, 0.9, size=(rows, sequences, 1)))),
        psi=torch.ones(rows, sequences, 2, dtype=torch.float64),
        state=torch.from_numpy(rng.normal(size=(1, 2, sequences, units))),
        burn_in=burn_in,
        age=0.0,
    )


def catch_config(**sections) -> Config:
    """Complete LBC-BM in miniature: three policies, mixture, voting bandits, LSTM, auxiliary tasks, burn-in.

    sections: replacements per section, e.g. ``run={"seed": 2}``.
    """
    config = Config(
        environment=EnvironmentConfig(id="catch", catch_rows=5, catch_columns=3),
        population=PopulationConfig(),
        model=ModelConfig(torso="mlp", torso_units=12, lstm_units=8, head_units=8),
        behavior=BehaviorConfig(),
        controller=ControllerConfig(scope="shared", replacement_interval=10),
        target=TargetConfig(policy="decoupled"),
        buffer=BufferConfig(sequence_length=7, burn_in=3, batch_size=4, replay=2),
        learner=LearnerConfig(learning_rate=1e-3, warmup_steps=4000, push_interval=3),
        actor=ActorConfig(num_envs=4, pull_interval=4),
        run=RunConfig(
            runtime="serial", frames=2000, seed=1, device="cpu", precision="float64", threads=1, reports=10
        ),
    )
    for name, values in sections.items():
        config = replace(config, **{name: replace(getattr(config, name), **values)})
    return config
