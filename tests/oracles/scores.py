"""Scores as one would compute them with pencil and paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product


def normalised(score: float, random: float, reference: float) -> float:
    """Percent of the way from chance to the reference, exactly, then rounded once."""
    way = Fraction(reference) - Fraction(random)
    return float(100 * (Fraction(score) - Fraction(random)) / way)


def mean(games: Sequence[Sequence[float]]) -> float:
    total = Fraction(0)
    for seeds in games:
        total += sum((Fraction(score) for score in seeds), Fraction(0)) / len(seeds)
    return float(total / len(games))


def median(games: Sequence[Sequence[float]]) -> float:
    means = sorted(sum((Fraction(score) for score in seeds), Fraction(0)) / len(seeds) for seeds in games)
    middle = len(means) // 2
    return float(means[middle] if len(means) % 2 else (means[middle - 1] + means[middle]) / 2)


def iqm(games: Sequence[Sequence[float]]) -> float:
    """Every score as a slab of a certain width, laid side by side in order; the ends are sawn off."""
    slabs = sorted(
        (Fraction(score), Fraction(1, len(seeds) * len(games))) for seeds in games for score in seeds
    )
    total = len(slabs)
    left = Fraction(total // 4, total)
    right = 1 - left
    position, area, width_kept = Fraction(0), Fraction(0), Fraction(0)
    for score, width in slabs:
        kept = min(position + width, right) - max(position, left)
        if kept > 0:
            area += score * kept
            width_kept += kept
        position += width
    return float(area / width_kept)


def all_resamples(
    metric: Callable[[Sequence[Sequence[float]]], float], games: Sequence[Sequence[float]]
) -> list[float]:
    """The metric of every way to draw each game's seeds with replacement; all are equally likely."""
    ways = [list(product(seeds, repeat=len(seeds))) for seeds in games]
    return sorted(metric(drawn) for drawn in product(*ways))


def estimated_median(hns: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The product form of the same formula: Π (1 + HNS)^c − 1."""
    result = 1.0
    for game, weight in weights.items():
        result *= math.pow(1.0 + (hns[game] if hns[game] > 0 else 0.0), weight)
    return result - 1.0
