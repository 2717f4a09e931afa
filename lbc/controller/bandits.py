"""The population-based bandit that votes, one population per dimension of Psi.

For every dimension independently, P bandits keep for each region k the count N_k and the sum of
returns, and

    Score(k) = z(V_k) + c sqrt( log(1 + sum_j N_j) / (1 + N_k) )
    z(V_k)   = (V_k - mean V) / std V  over visited regions;  0 for unvisited ones

Each bandit votes for its Top-D regions, the region with most votes wins, ties broken uniformly at
random at both levels.  A single UCB bandit is the population of one that votes for its best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

State = dict[str, np.ndarray]


def ucb_scores(
    counts: np.ndarray, sums: np.ndarray, c: np.ndarray, in_flight: np.ndarray | float = 0.0
) -> np.ndarray:
    """counts, sums: [..., R];  c: [...];  returns Score(k): [..., R].

    `in_flight` pulls (made, not yet rewarded) join N in the bonus alone, so that many environments
    that ask at once do not all get the same answer.
    """
    visited = counts > 0
    total = visited.sum(-1, keepdims=True)
    mean = np.where(visited, sums / np.where(visited, counts, 1.0), 0.0)
    centre = mean.sum(-1, keepdims=True) / np.maximum(total, 1)
    deviation = np.where(visited, mean - centre, 0.0)
    std = np.sqrt((deviation**2).sum(-1, keepdims=True) / np.maximum(total, 1))
    spread = std > 1e-12 * (1.0 + np.abs(centre))  # regions that differ by rounding alone are equal
    z = np.where(spread, deviation / np.where(spread, std, 1.0), 0.0)
    pulls = counts + in_flight
    bonus = np.sqrt(np.log1p(pulls.sum(-1, keepdims=True)) / (1.0 + pulls))
    return z + c[..., None] * bonus


def top(scores: np.ndarray, d: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Marks the d best regions of each row, ties in random order: [..., R] -> bool [..., R]."""
    order = np.lexsort((rng.random(scores.shape), -scores), axis=-1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(scores.shape[-1]), order.shape), axis=-1)
    return rank < d[..., None]


@dataclass(frozen=True)
class Vote:
    """One election per dimension."""

    regions: np.ndarray  # [K] winners
    votes: np.ndarray  # [K, R] votes of each region


class BanditPopulation:
    """P bandits per dimension over K dimensions with R_k regions; its state is plain arrays."""

    SAVED = ("_rng", "counts", "sums", "squares", "in_flight", "c", "age", "episodes")

    def __init__(
        self,
        regions: tuple[int, ...],  # [K] number of regions of each dimension
        rng: np.random.Generator,
        population: int = 7,
        c_range: tuple[float, float] = (0.5, 1.5),
        top_d: int = 4,
        replacement_interval: int | None = 50,
    ) -> None:
        width = max(regions)
        shape = (len(regions), population, width)
        self._rng = rng
        self._c_range = c_range
        self._interval = replacement_interval
        self._exists = np.arange(width) < np.array(regions)[:, None]  # [K, R]
        # Voting for most of the regions is voting for none: D never exceeds half of them.
        self._top_d = np.minimum(top_d, np.maximum(1, np.array(regions) // 2))[:, None]  # [K, 1]
        self.counts = np.zeros(shape)  # [K, P, R]
        self.sums = np.zeros(shape)  # [K, P, R]
        self.squares = np.zeros(shape)  # [K, P, R] of returns, for the signal-to-noise diagnostic
        self.in_flight = np.zeros((len(regions), width))  # [K, R]
        self.c = rng.uniform(*c_range, size=shape[:2])  # [K, P]
        self.age = np.zeros(shape[:2])  # [K, P] episodes since creation
        self.episodes = 0

    def vote(self) -> Vote:
        scores = ucb_scores(self.counts, self.sums, self.c, self.in_flight[:, None])
        scores = np.where(self._exists[:, None], scores, -np.inf)
        votes = top(scores, np.broadcast_to(self._top_d, self.c.shape), self._rng).sum(1)  # [K, R]
        winners = top(votes.astype(np.float64), np.ones(len(votes), dtype=int), self._rng).argmax(-1)
        return Vote(winners, votes)

    def launch(self, regions: np.ndarray, amount: int = 1) -> None:
        """Notes a pull that is made but not yet rewarded (amount -1 takes it back)."""
        self.in_flight[np.arange(len(regions)), regions] += amount

    def update(self, regions: np.ndarray, score: float, weight: np.ndarray) -> None:
        """Credits an episode's score to its regions [K] in every bandit, once; weight: [K], usually 1."""
        index = (np.arange(len(regions)), slice(None), regions)
        self.counts[index] += weight[:, None]
        self.sums[index] += (score * weight)[:, None]
        self.squares[index] += (score**2 * weight)[:, None]
        self.age += 1
        self.episodes += 1
        if self._interval is not None and self.episodes % self._interval == 0:
            self._replace()

    def _replace(self) -> None:
        """Re-creates one uniformly chosen bandit per dimension: it forgets, and so tracks change."""
        dims, population = self.c.shape
        chosen = (np.arange(dims), self._rng.integers(population, size=dims))
        for array in (self.counts, self.sums, self.squares, self.age):
            array[chosen] = 0.0
        self.c[chosen] = self._rng.uniform(*self._c_range, size=dims)

    def state(self) -> State:
        return {
            "counts": self.counts.copy(),
            "sums": self.sums.copy(),
            "squares": self.squares.copy(),
            "c": self.c.copy(),
            "age": self.age.copy(),
            "episodes": np.array(self.episodes),
        }

    def restore(self, state: State) -> None:
        for name in ("counts", "sums", "squares", "c", "age"):
            getattr(self, name)[...] = state[name]
        self.episodes = int(state["episodes"])
