"""Many games, one number: mean, median and interquartile mean, with bootstrap intervals.

``scores`` is one array per game, one entry per seed.  Published agents come with one entry per game.  A
game's own score is the mean of its seeds; every game counts alike, however many seeds it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

REPETITIONS = 2000
CONFIDENCE = 95.0  # percent

Scores = Sequence[np.ndarray]  # per game: [seeds]
Metric = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Estimate:
    """A number and the interval around it; no interval where there is nothing to resample."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Aggregate:
    mean: Estimate
    median: Estimate
    iqm: Estimate
    resampled: str  # seeds | games | "": what the intervals are over


def aggregate(scores: Scores, repetitions: int = REPETITIONS, seed: int = 0) -> Aggregate:
    """All three, with percentile intervals from the same resamples.

    Several seeds: a stratified bootstrap, seeds drawn anew inside each game; it says how far another
    training could end elsewhere.  One seed each: games drawn anew; it says what hangs on their choice.
    """
    values, counts = _packed(scores)
    kind, drawn = _resamples(values, counts, repetitions, np.random.default_rng(seed))

    def estimate(metric: Metric) -> Estimate:
        value = float(metric(values, counts))
        if drawn is None:
            return Estimate(value)
        tail = (100.0 - CONFIDENCE) / 2
        low, high = np.percentile(metric(drawn, counts), [tail, 100.0 - tail])
        return Estimate(value, float(low), float(high))

    return Aggregate(estimate(_mean), estimate(_median), estimate(_iqm), kind)


def mean(scores: Scores) -> float:
    """Mean over games of each game's mean."""
    return float(_mean(*_packed(scores)))


def median(scores: Scores) -> float:
    """Median over games of each game's mean."""
    return float(_median(*_packed(scores)))


def iqm(scores: Scores) -> float:
    """Mean of the middle half of all entries.

    Of N entries, ⌊N/4⌋ go at either end.  Where games have unequal numbers of seeds an entry weighs one over
    the seeds of its game, and the same share of all weight goes.
    """
    return float(_iqm(*_packed(scores)))


def _packed(scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Entries game after game [N], and how many each game has [G]."""
    arrays = [np.atleast_1d(np.asarray(entries, dtype=np.float64)) for entries in scores]
    if not arrays or any(array.ndim != 1 or not len(array) for array in arrays):
        raise ValueError("an aggregate needs at least one game, and at least one score in each")
    return np.concatenate(arrays), np.array([len(array) for array in arrays])


def _by_game(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[..., N] -> [..., G]."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.add.reduceat(values, starts, axis=-1) / counts


def _mean(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return _by_game(values, counts).mean(-1)


def _median(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.median(_by_game(values, counts), axis=-1)


def _iqm(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    total = values.shape[-1]
    cut = total // 4 / total
    order = np.argsort(values, axis=-1)
    weight = np.repeat(1.0 / (counts * len(counts)), counts)[order]  # sums to 1
    upto = np.cumsum(weight, axis=-1)
    kept = np.clip(np.minimum(upto, 1.0 - cut) - np.maximum(upto - weight, cut), 0.0, None)
    return (np.take_along_axis(values, order, -1) * kept).sum(-1) / kept.sum(-1)


def _resamples(
    values: np.ndarray, counts: np.ndarray, repetitions: int, rng: np.random.Generator
) -> tuple[str, np.ndarray | None]:
    """What was drawn anew, and the draws [D, N]."""
    starts = np.cumsum(counts) - counts
    if counts.max() > 1:
        picks = [
            start + rng.integers(0, count, (repetitions, count))
            for start, count in zip(starts, counts, strict=True)
        ]
        return "seeds", values[np.concatenate(picks, axis=1)]
    if len(counts) > 1:
        return "games", values[rng.integers(0, len(values), (repetitions, len(values)))]
    return "", None
