"""The voting bandits, one bandit and one region at a time."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

Floats = Sequence[float]


def ucb_scores(returns: Sequence[Floats], c: float) -> list[float]:
    """returns[k]: every return that region k ever got.  The score of each region."""
    means = [sum(history) / len(history) if history else None for history in returns]
    visited = [mean for mean in means if mean is not None]
    centre = sum(visited) / len(visited) if visited else 0.0
    std = math.sqrt(sum((mean - centre) ** 2 for mean in visited) / len(visited)) if visited else 0.0
    pulls = sum(len(history) for history in returns)
    scores = []
    for mean, history in zip(means, returns, strict=True):
        z = (mean - centre) / std if mean is not None and std > 0 else 0.0
        scores.append(z + c * math.sqrt(math.log(1 + pulls) / (1 + len(history))))
    return scores


def vote(scores: Sequence[Floats], d: int, rng: random.Random) -> tuple[int, list[int]]:
    """scores: one list per bandit.  The winning region and the votes of each region."""
    votes = [0] * len(scores[0])
    for bandit in scores:
        regions = list(range(len(bandit)))
        rng.shuffle(regions)  # equal scores: whoever comes first in a random order
        regions.sort(key=lambda k: bandit[k], reverse=True)
        for region in regions[:d]:
            votes[region] += 1
    most = [region for region, count in enumerate(votes) if count == max(votes)]
    return rng.choice(most), votes
