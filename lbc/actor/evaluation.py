"""Evaluation: whole episodes with psi given, one per environment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from lbc.actor.actor import Actor
from lbc.actor.mind import Mind
from lbc.behavior.mapping import BehaviorMapping
from lbc.behavior.population import PolicyHyperParameters
from lbc.behavior.target import TargetPolicy
from lbc.interfaces import VectorEnvironment
from lbc.models.network import PolicyNetwork


class Played(NamedTuple):
    """The episodes that count, each [E]."""

    scores: np.ndarray  # raw
    steps: np.ndarray


class _Given:
    """psi as it was given, whatever the score."""

    def __init__(self, psi: np.ndarray) -> None:
        self._psi = psi

    def start(self, index: int) -> np.ndarray:
        return np.asarray(self._psi[index])

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
) -> Played:
    """One episode per environment, played with psi [E, 2M].

    Exactly the first episode of each environment counts, so long ones weigh as much as short ones.
    """
    count = environment.num_envs
    played = Played(np.full(count, np.nan), np.zeros(count, np.int64))
    mind = Mind(environment.spec, count, networks, population, mapping, target, seed, device, dtype)
    actor = Actor(environment, mind, _Given(psi), seed)
    while np.isnan(played.scores).any():
        for end in actor.step().ended:
            if np.isnan(played.scores[end.index]):
                played.scores[end.index], played.steps[end.index] = end.score, end.steps
    environment.recv()  # the last step has been sent already
    return played


def ways_to_play(favourite: np.ndarray, components: int, kappa: float) -> dict[str, np.ndarray]:
    """Name -> psi: what the controller favours, and each component alone, as its learner sees it."""
    alone = {
        f"component_{i + 1}": np.concatenate([np.full(components, kappa), np.eye(components)[i]])
        for i in range(components)
    }
    return {"favourite": favourite} | alone
