"""A trained agent: what a run directory holds of it, and how it acts, anywhere.

::

    agent = load_agent("runs/asterix")
    action, episode = agent.act(frame)                          # a new episode
    action, episode = agent.act(frame, episode, reward=1.0)     # and on

Nothing of the training is needed, and nothing that is read is executed.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from lbc.actor import Mind
from lbc.behavior import (
    BehaviorMapping,
    PolicyHyperParameters,
    TargetPolicy,
    build_mapping,
    build_population,
    build_target,
)
from lbc.cards import from_toml
from lbc.cards.toml import text_of
from lbc.config import Config
from lbc.controller import MetaController
from lbc.environments import make
from lbc.errors import UserError
from lbc.models import PolicyNetwork
from lbc.parameters import Checkpoint, give, load_weights, newest
from lbc.parameters.compact import unpack
from lbc.reporting import RunDirectory
from lbc.runtime.experiment import meta_controller, precision, select_device
from lbc.types import EnvironmentSpec

M = TypeVar("M", bound=Mind)


@dataclass
class Episode:
    """What an agent remembers of one episode: frames, recurrent states, its last action."""

    mind: Mind
    psi: np.ndarray


@dataclass(frozen=True)
class Agent:
    """All policies of a run, how they become one behavior, and which behavior its controller favours."""

    config: Config
    spec: EnvironmentSpec
    population: tuple[PolicyHyperParameters, ...]
    mapping: BehaviorMapping
    target: TargetPolicy
    networks: list[PolicyNetwork]
    favourite: np.ndarray  # psi [2M]
    controller: MetaController | None  # as the last checkpoint left it; None where there is none
    frames: int  # that it has learned from
    device: torch.device
    dtype: torch.dtype

    def act(
        self,
        frame: np.ndarray,
        episode: Episode | None = None,
        reward: float = 0.0,
        psi: np.ndarray | None = None,
        seed: int = 0,
    ) -> tuple[int, Episode]:
        """An action for the newest frame (one, not stacked: `spec.frame_shape`), and what to go on with.

        Without `episode` a new one begins, with `psi` or else the favourite; `reward` is what the last action
        brought.
        """
        first = episode is None
        if episode is None:
            episode = Episode(self.mind(1, seed), self.favourite if psi is None else np.asarray(psi))
        if np.shape(frame) != self.spec.frame_shape:
            raise UserError(f"a frame has shape {np.shape(frame)}, but must have {self.spec.frame_shape}.")
        numbers = np.concatenate([[first, 0.0 if first else reward, False, True], episode.psi])
        thought = episode.mind.think(np.asarray(frame)[None], numbers[None])
        return int(thought.actions[0]), episode

    def mind(self, num_envs: int, seed: int, kind: type[M] = Mind) -> M:  # type: ignore[assignment]
        """What acts for `num_envs` environments at once."""
        parts = (self.networks, self.population, self.mapping, self.target)
        return kind(self.spec, num_envs, *parts, seed, self.device, self.dtype)


def load_agent(directory: str | Path, device: str = "auto") -> Agent:
    """Reads configuration, newest weights and controller of a run; nothing of them is executed."""
    run = RunDirectory(Path(directory))
    if not run.config.exists():
        raise UserError(f"'{directory}' holds no run.")
    config = from_toml(text_of(run.config))
    checkpoint, complaints = newest(run.checkpoints)
    for complaint in complaints:
        warnings.warn(complaint, stacklevel=2)
    weights, frames = _weights(run, checkpoint)
    environment = make(config.environment, 1)
    spec = environment.spec
    environment.close()
    place = select_device(device)
    dtype, mixed = precision(config, place)
    population = build_population(config.population)
    mapping = build_mapping(config.behavior, len(population))
    networks = [PolicyNetwork(spec, config.model, config.target, mixed).to(place, dtype) for _ in population]
    try:
        for network, found in zip(networks, weights, strict=True):
            network.load_state_dict(found)
    except (RuntimeError, ValueError):
        raise UserError(f"the weights in '{run.checkpoints}' do not fit '{run.config}'.") from None
    controller = None if checkpoint is None else _controller(config, spec, checkpoint, run)
    favourite = _favourite(run) if controller is None else controller.favourite()
    target = build_target(config.target, mapping, len(population))
    return Agent(
        config, spec, population, mapping, target, networks, favourite, controller, frames, place, dtype
    )


def _weights(run: RunDirectory, checkpoint: Checkpoint | None) -> tuple[list[dict[str, Tensor]], int]:
    """Of all policies, and the frames that they had learned from."""
    if checkpoint is not None:
        tensors = unpack(checkpoint.tensors, checkpoint.state.get("packed", {}))
        policies: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            place = name.split(".", 4)  # run.learners.<i>.network.<name>
            if len(place) == 5 and place[:2] == ["run", "learners"] and place[3] == "network":
                policies.setdefault(int(place[2]), {})[place[4]] = tensor
        if policies:
            return [policies[i] for i in sorted(policies)], checkpoint.frames
    try:
        return load_weights(run.checkpoints / "weights.safetensors"), _summary(run).get("frames", 0)
    except (OSError, SafetensorError, ValueError):
        raise UserError(f"'{run.path}' has no weights that can be read yet.") from None


def _controller(
    config: Config, spec: EnvironmentSpec, checkpoint: Checkpoint, run: RunDirectory
) -> MetaController:
    controller = meta_controller(config, spec, np.random.default_rng(config.run.seed))
    try:
        saved = dict(checkpoint.state["run"]["custom"]["dict"])["controller"]
        give(controller, saved, checkpoint.tensors, "run.controller")
    except (KeyError, TypeError, ValueError, UserError):
        raise UserError(f"the checkpoint in '{run.checkpoints}' does not fit '{run.config}'.") from None
    return controller


def _favourite(run: RunDirectory) -> np.ndarray:
    summary = _summary(run)
    try:
        return np.array([*summary["favourite_tau"], *summary["favourite_omega"]])
    except (KeyError, TypeError):
        raise UserError(
            f"'{run.path}' does not say which behavior its controller favours: it has neither a checkpoint "
            "that can be read nor a summary."
        ) from None


def _summary(run: RunDirectory) -> dict[str, Any]:
    try:
        found = json.loads(run.summary.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
