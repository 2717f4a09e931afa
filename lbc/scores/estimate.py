"""What all 57 games would say, from a few of them.

Aitchison, Sweetser and Hutter (Atari-5, 2022) predict the median of all games from a few, by a regression on
logarithms over published agents::

    estimate = 10^(Σ c_g log10(1 + max(HNS_g, 0))) − 1          HNS in percent

Five games to report with, three others to tune on; who tunes on the five has no test left.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

ATARI_5 = {
    "Battle Zone": 0.38198,
    "Double Dunk": 0.06791,
    "Name This Game": 0.31080,
    "Phoenix": 0.12413,
    "Qbert": 0.08049,
}
ATARI_3_VAL = {"Assault": 0.3353, "Ms Pacman": 0.4236, "Yars Revenge": 0.1916}


def estimate(hns: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    """Estimated median HNS of all games in percent; None where one of the games is missing."""
    if missing(hns, weights):
        return None
    exponent = sum(weight * math.log10(1.0 + max(hns[game], 0.0)) for game, weight in weights.items())
    return 10.0**exponent - 1.0


def missing(hns: Collection[str], weights: Mapping[str, float]) -> list[str]:
    return [game for game in weights if game not in hns]
