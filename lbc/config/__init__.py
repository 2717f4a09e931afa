"""Typed configuration, one frozen record per component; a card (TOML) sets any of these values.

The defaults are the paper's, so the card ``atari`` is nearly empty.  Every record checks itself and
says in one sentence what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lbc.config.algorithm import (
    BehaviorConfig,
    BufferConfig,
    ControllerConfig,
    LearnerConfig,
    ModelConfig,
    PopulationConfig,
    TargetConfig,
)
from lbc.config.checks import require
from lbc.config.environment import EnvironmentConfig
from lbc.config.running import ActorConfig, RunConfig

__all__ = [
    "ActorConfig",
    "BehaviorConfig",
    "BufferConfig",
    "Config",
    "ControllerConfig",
    "EnvironmentConfig",
    "LearnerConfig",
    "ModelConfig",
    "PopulationConfig",
    "RunConfig",
    "TargetConfig",
]


@dataclass(frozen=True)
class Config:
    """One experiment: what a card resolves to, and what ``config.toml`` of a run holds."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    population: PopulationConfig = field(default_factory=PopulationConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    behavior: BehaviorConfig = field(default_factory=BehaviorConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    target: TargetConfig = field(default_factory=TargetConfig)
    buffer: BufferConfig = field(default_factory=BufferConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    actor: ActorConfig = field(default_factory=ActorConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        size = self.population.size
        require(
            all(i < size for i in self.behavior.components),
            f"behavior.components names a policy beyond the population of {size}; policies count from 0.",
        )
        require(
            self.behavior.entropy_control == "boltzmann" or self.behavior.on_policy_share == 0.0,
            "behavior.on_policy_share needs entropy_control 'boltzmann': epsilon-greedy is never on-policy.",
        )
        require(
            self.behavior.entropy_control == "boltzmann" or not self.target.shared,
            "target.shared needs behavior.entropy_control 'boltzmann': epsilon-greedy has no gradient.",
        )
        require(
            self.learner.minibatches <= self.buffer.batch_size,
            f"learner.minibatches is {self.learner.minibatches}, but a batch has only "
            f"{self.buffer.batch_size} sequences (buffer.batch_size).",
        )
