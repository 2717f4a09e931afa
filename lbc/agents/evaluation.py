"""How well does an agent play?  Whole episodes in every way that it can play, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lbc.actor import play_episodes, ways_to_play
from lbc.agents.agent import Agent
from lbc.environments import make_apart
from lbc.errors import UserError, nearest


@dataclass(frozen=True)
class Scores:
    """Raw scores of the episodes that were played in one way."""

    episodes: np.ndarray
    steps: np.ndarray | None = None  # that each of them took

    @property
    def mean(self) -> float:
        return float(self.episodes.mean())

    @property
    def median(self) -> float:
        return float(np.median(self.episodes))

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN for a single episode."""
        count = len(self.episodes)
        return float(self.episodes.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")

    @property
    def different(self) -> int:
        """How many there are that differ in score or length.

        Few where the game has no chance of its own and the behavior is nearly greedy: it repeats itself.
        """
        together = [self.episodes] if self.steps is None else [self.episodes, self.steps]
        return len(np.unique(np.stack(together), axis=1).T)

    @property
    def lowest(self) -> float:
        return float(self.episodes.min())

    @property
    def best(self) -> float:
        return float(self.episodes.max())


def evaluate(
    agent: Agent,
    episodes: int = 32,
    seed: int = 0,
    told: Callable[[int, int], None] | None = None,
    ways: Sequence[str] = (),
) -> dict[str, Scores]:
    """`episodes` in each of the `ways`, by default in all:

    favourite       the psi that the controller favours
    training        psi as the controller draws it while training; left out where no checkpoint holds it
    component_i     each component alone, as its learner sees it

    The game is the run's own: its idle starts, sticky actions and time limit.  All episodes of all ways play
    at once, and exactly one of each copy counts.  `told` hears at every step how many of how many have ended.
    """
    if episodes < 1:
        raise UserError(f"episodes is {episodes}, but must be at least 1.")
    known = {name: np.tile(psi, (episodes, 1)) for name, psi in fixed_ways(agent).items()}
    if agent.controller is not None:
        known["training"] = _as_in_training(agent, episodes)
    for way in ways:
        if way not in known:
            raise UserError(f"'{way}' is no way to play.{nearest(way, list(known))}")
    wanted = dict.fromkeys(ways or known)  # once each, in the order that was asked for
    psi = np.concatenate([known[way] for way in wanted])
    environment = make_apart(agent.config.environment, len(psi))
    try:
        parts = (agent.networks, agent.population, agent.mapping, agent.target)
        played = play_episodes(environment, *parts, psi, seed, agent.device, agent.dtype, told)
    finally:
        environment.close()
    by_way = (x.reshape(len(wanted), episodes) for x in played)
    return dict(zip(wanted, map(Scores, *by_way), strict=True))


def fixed_ways(agent: Agent) -> dict[str, np.ndarray]:
    """Name -> psi of the ways to play that are the same in every episode."""
    return ways_to_play(agent.favourite, len(agent.mapping.components), agent.config.target.kappa)


def _as_in_training(agent: Agent, episodes: int) -> np.ndarray:
    """psi for as many episodes as wanted, from all environments of the run evenly: [E, 2M]."""
    assert agent.controller is not None
    count = agent.config.actor.num_envs
    chosen = np.linspace(0, count - 1, episodes).round().astype(int)
    return np.stack([agent.controller.start(int(index)) for index in chosen])
