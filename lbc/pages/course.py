"""What became of a number over a run: its newest part against its beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

NEWEST = 0.2  # share of the reports that is judged: long enough to average, short enough to be now
FEWEST = 5  # reports on either side of a comparison; one alone is noise
MOST = 0.75  # of the newest scores above all of the first: once in a thousand if nothing was learned
KEPT = 0.5  # share of the best rise that has to be left; less, and something was forgotten


def ends(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first few values and the newest share; both empty where they would overlap."""
    count = max(FEWEST, math.ceil(NEWEST * len(values)))
    if len(values) < FEWEST + count:
        return (), ()
    return values[:FEWEST], values[-count:]


def _above(values: Sequence[float], others: Sequence[float]) -> bool:
    """Whether most of `values` beat all of `others`: rare by chance, whatever the noise looks like."""
    return sum(value > max(others) for value in values) >= MOST * len(values)


def course(scores: Sequence[float]) -> Literal["unknown", "flat", "risen", "fallen", "lost"]:
    """What became of a score: `fallen` has kept less than half of its best rise, `lost` nothing."""
    first, newest = ends(scores)
    if not first:
        return "unknown"
    width = len(newest)
    starts = [*range(0, len(scores) - width, max(1, width // 4)), len(scores) - width]
    best = max((scores[i : i + width] for i in starts), key=fmean)
    if not _above(best, first):
        return "flat"
    middle = fmean(first) + KEPT * (fmean(best) - fmean(first))
    if fmean(newest) >= middle or not _above(best, newest):
        return "risen" if _above(newest, first) else "flat"
    return "fallen" if _above(newest, first) else "lost"
