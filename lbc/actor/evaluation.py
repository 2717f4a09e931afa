"""Evaluation: whole episodes with psi given, one per environment."""

from __future__ import annotations

import numpy as np
import torch

from lbc.actor.actor import Actor
from lbc.actor.mind import Mind
from lbc.behavior.mapping import BehaviorMapping
from lbc.behavior.population import PolicyHyperParameters
from lbc.behavior.target import TargetPolicy
from lbc.interfaces import VectorEnvironment
from lbc.models.network import PolicyNetwork


class _Given:
    """psi as it was given, whatever the score; hears the first episode of every environment."""

    def __init__(self, psi: np.ndarray) -> None:
        self._psi = psi
        self.scores = np.full(len(psi), np.nan)

    def start(self, index: int) -> np.ndarray:
        return np.asarray(self._psi[index])

    def end(self, index: int, score: float | None) -> None:
        if score is not None and np.isnan(self.scores[index]):
            self.scores[index] = score


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
) -> np.ndarray:
    """Raw scores of one episode per environment, played with psi [E, 2M]: [E].

    Exactly the first episode of each environment counts, so long ones weigh as much as short ones.
    """
    given = _Given(psi)
    mind = Mind(
        environment.spec, environment.num_envs, networks, population, mapping, target, seed, device, dtype
    )
    actor = Actor(environment, mind, given, seed)
    while np.isnan(given.scores).any():
        actor.step()
    environment.recv()  # the last step has been sent already
    return given.scores


def ways_to_play(favourite: np.ndarray, components: int, kappa: float) -> dict[str, np.ndarray]:
    """Name -> psi: what the controller favours, and each component alone, as its learner sees it."""
    alone = {
        f"component_{i + 1}": np.concatenate([np.full(components, kappa), np.eye(components)[i]])
        for i in range(components)
    }
    return {"favourite": favourite} | alone
