"""A trained agent: what a run directory holds of it, and how it acts, anywhere.

::

    agent = load_agent("runs/asterix")
    action, state = agent.act(observation)                  # a new episode
    action, state = agent.act(observation, state, reward)   # and on

Nothing of the training is needed, and nothing that is read is executed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from lbc.actor import Mind
from lbc.agents.folder import directory_of
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
from lbc.config.own_parts import own_parts
from lbc.controller import MetaController
from lbc.environments import make
from lbc.errors import UserError
from lbc.models import PolicyNetwork
from lbc.parameters import Checkpoint, give
from lbc.parameters.trained import read_trained
from lbc.reporting import RunDirectory
from lbc.reporting.rundir import read_json
from lbc.runtime.device import precision, select_device
from lbc.runtime.experiment import meta_controller
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

    def __repr__(self) -> str:
        return (
            f"<Agent for {self.spec.id}: {len(self.networks)} policies, {self.frames:,} frames of training>"
        )

    def act(
        self,
        observation: Any,
        state: Episode | None = None,
        reward: float = 0.0,
        psi: np.ndarray | None = None,
        seed: int = 0,
    ) -> tuple[int, Episode]:
        """An action for the newest observation, counted from 0, and the state to go on with.

        observation: one frame, not stacked, as the run's environments give it (`spec.frame_shape`) or as
            Gymnasium does: channels last, or the number of a discrete state
        state: what the last call returned, which moves on in place; without one a new episode begins,
            with `psi` or else the favourite
        reward: what the last action brought, unshaped
        seed: of a new episode's actions, which are drawn
        """
        first = state is None
        if state is None:
            state = Episode(self.mind(1, seed), self._psi(psi))
        numbers = np.concatenate([[first, 0.0 if first else reward, False, True], state.psi])
        thought = state.mind.think(self._frame(observation)[None], numbers[None])
        return int(thought.actions[0]), state

    def _psi(self, psi: np.ndarray | None) -> np.ndarray:
        if psi is None:
            return self.favourite
        if np.shape(psi) != self.favourite.shape:
            raise UserError(f"psi has shape {np.shape(psi)}, but must have {self.favourite.shape}.")
        return np.asarray(psi, np.float64)

    def _frame(self, observation: Any) -> np.ndarray:
        """As the run's environments would show it."""
        seen, shape = np.asarray(observation), self.spec.frame_shape
        if seen.shape == shape:
            return seen
        if seen.shape == () and len(shape) == 1 and seen.dtype.kind in "iu" and 0 <= seen < shape[0]:
            return np.eye(shape[0], dtype=np.float32)[int(seen)]
        if seen.ndim == 2 and (1, *seen.shape) == shape:
            return seen[None]
        if seen.ndim == 3 and seen.transpose(2, 0, 1).shape == shape:
            return seen.transpose(2, 0, 1)
        raise UserError(f"an observation has shape {seen.shape}, but must have {shape}.")

    def mind(self, num_envs: int, seed: int, kind: type[M] = Mind) -> M:  # type: ignore[assignment]
        """What acts for `num_envs` environments at once."""
        parts = (self.networks, self.population, self.mapping, self.target)
        return kind(self.spec, num_envs, *parts, seed, self.device, self.dtype)

    def export(self, path: str | Path, format: str = "torchscript", component: int | None = None) -> Path:
        """Writes the behavior, or one of its components alone, as a function that needs no lbc; or, with the
        format 'lbc', as a folder that `load_agent` reads (`lbc.agents.export`, `lbc.agents.folder`)."""
        from lbc.agents.export import export

        return export(self, Path(path), format, component)


def load_agent(directory: str | Path, device: str = "auto", allow_code: bool = False) -> Agent:
    """Reads configuration, newest weights and controller of a run; nothing of them is executed.

    `directory`: of a run, of an agent that was exported as a folder, or the name of one that comes with lbc.

    A run whose configuration names code as ``module:factory`` needs that code, and is refused unless
    `allow_code` says that it may be imported.
    """
    run = RunDirectory(directory_of(directory))
    config = from_toml(text_of(run.config))
    for key, name in own_parts(config).items() if not allow_code else ():
        raise UserError(
            f"'{directory}' names code that would be imported, {key} = '{name}'; "
            "if you trust it, allow it with --allow-code (in Python: allow_code=True)."
        )
    trained = read_trained(run.checkpoints)
    for complaint in trained.complaints:
        warnings.warn(complaint, stacklevel=2)
    checkpoint = trained.checkpoint
    frames = read_json(run.summary).get("frames", 0) if checkpoint is None else checkpoint.frames
    environment = make(config.environment, 1)
    spec = environment.spec
    environment.close()
    place = select_device(device)
    dtype, mixed = precision(config, place)
    population = build_population(config.population)
    mapping = build_mapping(config.behavior, len(population))
    networks = [PolicyNetwork(spec, config.model, config.target, mixed).to(place, dtype) for _ in population]
    try:
        for network, found in zip(networks, trained.weights, strict=True):
            network.load_state_dict(found)
        if trained.means:
            for network, means in zip(networks, trained.means, strict=True):
                for tensor, mean in zip(network.numbers().values(), means, strict=True):
                    tensor.data.copy_(mean)
    except (RuntimeError, ValueError):
        raise UserError(f"the weights in '{run.checkpoints}' do not fit '{run.config}'.") from None
    controller = None if checkpoint is None else _controller(config, spec, checkpoint, run)
    favourite = _favourite(run) if controller is None else controller.favourite()
    target = build_target(config.target, mapping, len(population))
    return Agent(
        config, spec, population, mapping, target, networks, favourite, controller, frames, place, dtype
    )


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
    summary = read_json(run.summary)
    try:
        return np.array([*summary["favourite_tau"], *summary["favourite_omega"]])
    except (KeyError, TypeError):
        raise UserError(
            f"'{run.path}' does not say which behavior its controller favours: it has neither a checkpoint "
            "that can be read nor a summary."
        ) from None
