"""A raw score as a share of what others reach, in percent; one function per formula.

All take numbers or arrays.  Where a game's reference is below chance nothing special happens: the
formulas are lines through (random, 0) and (reference, 100).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

Number = TypeVar("Number", float, np.ndarray)

SABER_CAP = 200.0  # percent


def hns(score: Number, random: float, human: float) -> Number:
    """Human-normalised score: 100 (s − random) / (human − random)."""
    return 100.0 * (score - random) / (human - random)


def hwrns(score: Number, random: float, record: float) -> Number:
    """Normalised by the human world record: 100 (s − random) / (record − random)."""
    return 100.0 * (score - random) / (record - random)


def saber(score: Number, random: float, record: float) -> Number:
    """min(HWRNS, 200): one easy record cannot carry a mean.  Not cut off below."""
    return np.minimum(hwrns(score, random, record), SABER_CAP)


def breaks_record(score: float, record: float) -> bool:
    """Whether the human world record is reached, s ≥ record; their count is HWRB."""
    return score >= record
