"""Who chooses psi at the start of an episode.  Every member answers `choose` and hears `learn`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lbc.behavior.space import BehaviorSpace
from lbc.config import ControllerConfig
from lbc.controller.bandits import BanditPopulation, State


@dataclass(frozen=True)
class Choice:
    """The behavior of one episode."""

    psi: np.ndarray  # [2M] (tau_1..tau_M, omega_1..omega_M)
    regions: np.ndarray  # [K] region of each dimension; -1 where nobody chose
    votes_entropy: float = float("nan")  # of the votes, mean over dimensions, in nats


class Controller(Protocol):
    """::

    choice = controller.choose(index)      # at the start of an episode of environment `index`
    ...                                    # play the whole episode with choice.psi
    controller.learn(choice, score)        # raw undiscounted score, or None: the episode was lost
    """

    def choose(self, index: int) -> Choice: ...

    def learn(self, choice: Choice, score: float | None) -> None: ...

    def favourite(self) -> np.ndarray: ...  # [2M] the psi to evaluate with

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class BanditController:
    """Voting bandits over every dimension of Psi; the paper's meta-controller."""

    SAVED = ("_rng", "bandits")

    def __init__(
        self,
        space: BehaviorSpace,
        bandits: BanditPopulation,
        rng: np.random.Generator,
        count_at_start: bool,
        credit_by_omega: bool,
    ) -> None:
        self.space = space
        self.bandits = bandits
        self._rng = rng
        self._count_at_start = count_at_start
        self._credit_by_omega = credit_by_omega

    def choose(self, index: int) -> Choice:
        vote = self.bandits.vote()
        if self._count_at_start:
            self.bandits.launch(vote.regions)
        share = vote.votes / vote.votes.sum(-1, keepdims=True)
        entropy = -(share * np.log(np.where(share > 0, share, 1.0))).sum(-1).mean()
        return Choice(self.space.draw(vote.regions, self._rng), vote.regions, float(entropy))

    def learn(self, choice: Choice, score: float | None) -> None:
        if self._count_at_start:
            self.bandits.launch(choice.regions, -1)
        if score is not None:
            self.bandits.update(choice.regions, score, self._weight(choice.psi))

    def _weight(self, psi: np.ndarray) -> np.ndarray:
        """How much of an episode each dimension is credited with: [K]."""
        omega = psi[self.space.components :]
        return np.array(
            [
                omega[d.component] if self._credit_by_omega and d.name.startswith("tau") else 1.0
                for d in self.space.dimensions
            ]
        )

    def favourite(self) -> np.ndarray:
        """Centre of the best region by mean return over all bandits; a region needs a fair share of pulls."""
        counts, sums = self.bandits.counts.sum(1), self.bandits.sums.sum(1)  # [K, R]
        known = counts >= 0.25 * counts.sum(-1, keepdims=True) / np.array(self.space.regions)[:, None]
        mean = np.where(known & (counts > 0), sums / np.maximum(counts, 1e-9), -np.inf)
        return self.space.centre(mean.argmax(-1))

    def state(self) -> State:
        return self.bandits.state()

    def restore(self, state: State) -> None:
        self.bandits.restore(state)


class RandomController:
    """Uniform random regions: the ablation 'random selection'."""

    SAVED = ("_rng",)

    def __init__(self, space: BehaviorSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng

    def choose(self, index: int) -> Choice:
        regions = self._rng.integers(np.array(self._space.regions))
        return Choice(self._space.draw(regions, self._rng), regions)

    def learn(self, choice: Choice, score: float | None) -> None:
        pass  # nothing is learned, by definition

    def favourite(self) -> np.ndarray:
        return self._space.centre(np.array(self._space.regions) // 2)

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass  # there is none


class RuleController(RandomController):
    """Fixed rule: equal omega, tau of environment j spread evenly over the regions by its index."""

    def __init__(self, space: BehaviorSpace, rng: np.random.Generator, num_envs: int) -> None:
        super().__init__(space, rng)
        self._last = max(1, num_envs - 1)

    def choose(self, index: int) -> Choice:
        regions = np.array([round(index / self._last * (count - 1)) for count in self._space.regions])
        return Choice(self._equal(regions), regions)

    def favourite(self) -> np.ndarray:
        return self._equal(np.array(self._space.regions) // 2)

    def _equal(self, regions: np.ndarray) -> np.ndarray:
        psi = self._space.centre(regions)
        psi[self._space.components :] = 1.0 / self._space.components
        return psi


def build_controller(
    config: ControllerConfig, space: BehaviorSpace, rng: np.random.Generator, num_envs: int
) -> Controller:
    if config.kind == "random":
        return RandomController(space, rng)
    if config.kind == "rule":
        return RuleController(space, rng, num_envs)
    single = config.kind == "ucb"
    bandits = BanditPopulation(
        space.regions,
        rng,
        population=1 if single else config.population,
        c_range=(config.ucb_c_low, config.ucb_c_high),
        top_d=1 if single else config.top_d,
        replacement_interval=None if single else config.replacement_interval,
    )
    return BanditController(space, bandits, rng, config.count_pulls == "start", config.credit == "omega")
