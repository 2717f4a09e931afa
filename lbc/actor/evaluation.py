"""Evaluation: whole episodes with psi given, one per environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from lbc.actor.actor import Actor
from lbc.actor.mind import Mind
from lbc.behavior.mapping import BehaviorMapping
from lbc.behavior.population import PolicyHyperParameters
from lbc.behavior.target import TargetPolicy
from lbc.environments import Apart
from lbc.interfaces import VectorEnvironment
from lbc.models.network import PolicyNetwork
from lbc.types import EnvironmentStep

FEW = 0.9  # share of the copies thought about that still play, at which the others are let go


class Played(NamedTuple):
    """The episodes that count, each [E]."""

    scores: np.ndarray  # raw
    steps: np.ndarray


class _Remaining:
    """Of an environment, the copies whose episode still counts; what the others do interests nobody."""

    resumable = False

    def __init__(self, environment: VectorEnvironment) -> None:
        self._environment = environment
        self.spec, self.close = environment.spec, environment.close
        self.num_envs = environment.num_envs
        self.copies = self._sent = np.arange(self.num_envs)

    def keep(self, which: np.ndarray) -> None:
        self.copies = self.copies[which]
        self.num_envs = len(which)

    def reset(self, seed: int) -> EnvironmentStep:
        return self._environment.reset(seed)

    def send(self, actions: np.ndarray) -> None:
        if isinstance(self._environment, Apart):
            self._sent = self.copies
            self._environment.send_to(self.copies, actions)
        else:
            everybody = np.zeros(self._environment.num_envs, actions.dtype)
            everybody[self.copies] = actions
            self._environment.send(everybody)

    def recv(self) -> EnvironmentStep:
        seen = self._environment.recv()
        if len(self._sent) == len(self.copies):
            return seen
        return seen.part(np.searchsorted(self._sent, self.copies))

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        self.send(actions)
        return self.recv()


class _Given:
    """psi as it was given, whatever the score."""

    def __init__(self, psi: np.ndarray, remaining: _Remaining) -> None:
        self._psi, self._remaining = psi, remaining

    def start(self, index: int) -> np.ndarray:
        return np.asarray(self._psi[self._remaining.copies[index]])

    def end(self, index: int, score: float | None) -> None:
        pass


def play_episodes(
    environment: VectorEnvironment,
    networks: list[PolicyNetwork],
    population: tuple[PolicyHyperParameters, ...],
    mapping: BehaviorMapping,
    target: TargetPolicy,
    psi: np.ndarray,
    seed: int,
    device: torch.device,
    dtype: torch.dtype,
    told: Callable[[int, int], None] | None = None,
) -> Played:
    """One episode per environment, played with psi [E, 2M].

    Exactly the first episode of each environment counts, so long ones weigh as much as short ones.  Whenever
    a tenth of them have ended, they are let go: nobody thinks about them any more, and where copies can be
    stepped apart, nobody plays them.  `told` hears at every step how many of how many have ended.
    """
    count = environment.num_envs
    played = Played(np.full(count, np.nan), np.zeros(count, np.int64))
    remaining = _Remaining(environment)
    mind = Mind(environment.spec, count, networks, population, mapping, target, seed, device, dtype)
    actor = Actor(remaining, mind, _Given(psi, remaining), seed)
    while (playing := np.isnan(played.scores[remaining.copies])).any():
        if playing.mean() <= FEW:
            actor.keep(np.flatnonzero(playing))
            remaining.keep(np.flatnonzero(playing))
        for end in actor.step().ended:
            copy = remaining.copies[end.index]
            if np.isnan(played.scores[copy]):
                played.scores[copy], played.steps[copy] = end.score, end.steps
        if told is not None:
            told(int((~np.isnan(played.scores)).sum()), count)
    environment.recv()  # the last step has been sent already
    return played


def ways_to_play(favourite: np.ndarray, components: int, kappa: float) -> dict[str, np.ndarray]:
    """Name -> psi: what the controller favours, and each component alone, as its learner sees it."""
    alone = {
        f"component_{i + 1}": np.concatenate([np.full(components, kappa), np.eye(components)[i]])
        for i in range(components)
    }
    return {"favourite": favourite} | alone
