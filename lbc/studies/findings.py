"""Sentences made from numbers, which never claim more than the seeds show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb

import numpy as np

from lbc.reporting.curves import FEW, FINAL_SHARE, Curve, interval

Finals = Mapping[str, np.ndarray]  # label -> one number per seed
Show = Callable[[float], str]


def two_digits(value: float) -> str:
    return f"{value:.2f}"


def spread_of(values: np.ndarray, show: Show = two_digits) -> str:
    """``5.10 [4.20, 6.00]``: the mean and its interval; one seed has none."""
    low, high = interval(values)
    return show(float(values.mean())) + (
        f" [{show(float(low))}, {show(float(high))}]" if len(values) > 1 else ""
    )


def side(values: np.ndarray, base: np.ndarray) -> int:
    """1: above `base` beyond the seeds' intervals; -1: below; 0: they overlap, or are single seeds."""
    if min(len(values), len(base)) < 2:
        return 0
    (low, high), (base_low, base_high) = interval(values), interval(base)
    return int(low > base_high) - int(high < base_low)


def compared(reference: str, finals: Finals, show: Show = two_digits) -> str:
    """How everybody stands to `reference`, and how much chance alone could do."""
    base = finals[reference]
    others = {label: values for label, values in finals.items() if label != reference}
    if not others:
        return f"{reference}: {spread_of(base, show)}; there is nothing to compare it with."
    groups: dict[int, list[str]] = {-1: [], 1: [], 0: []}
    for label, values in others.items():
        groups[side(values, base)].append(f"{label} ({spread_of(values, show)})")
    few = max(len(values) for values in finals.values()) <= FEW
    apart = "with every seed" if few else "with an interval that does not overlap"
    sentences = [f"{reference}: {spread_of(base, show)}."]
    for number, words in ((-1, f"Below it {apart}"), (1, f"Above it {apart}"), (0, _undecided(finals))):
        if groups[number]:
            sentences.append(f"{words}: {', '.join(groups[number])}.")
    if few and (groups[-1] or groups[1]):
        sentences.append(_by_chance(base, others))
    return " ".join(sentences)


def _undecided(finals: Finals) -> str:
    if min(len(values) for values in finals.values()) < 2:
        return "Not told apart from it, because a single seed says nothing about chance"
    return "Not told apart from it, because the seeds overlap"


def _by_chance(base: np.ndarray, others: Finals) -> str:
    """Two equal variants come apart completely in 2 of the (n + m choose n) orders of their seeds."""
    size = min(len(values) for values in others.values() if len(values) > 1)
    once = comb(len(base) + size, size) // 2
    comparisons = f", and there are {len(others)} comparisons here" if len(others) > 1 else ""
    return (
        f"(Two variants that are equal come apart like this by chance once in {once} comparisons"
        f" of {len(base)} with {size} seeds{comparisons}.)"
    )


def best(finals: Finals) -> str:
    """The label with the highest mean."""
    return max(finals, key=lambda label: float(finals[label].mean()))


def first_and_last(curve: Curve) -> tuple[float, float]:
    """Mean over the first and over the last tenth of the frames that the curve covers."""
    begin, span = curve.frames[0], curve.frames[-1] - curve.frames[0]
    early = curve.frames <= begin + FINAL_SHARE * span
    return float(curve.scores[early].mean()), curve.final


def moved(curves: Sequence[Curve], show: Show = two_digits) -> str:
    """``falls from 1.05 to 0.31, in all 3 seeds``."""
    ends = np.array([first_and_last(curve) for curve in curves])
    down = int((ends[:, 1] < ends[:, 0]).sum())
    falls = 2 * down > len(ends)
    agreeing = down if falls else len(ends) - down
    first, last = (show(float(x)) for x in ends.mean(0))
    seeds = "in its only seed" if len(ends) == 1 else f"in {_share(agreeing, len(ends))}"
    return f"{'falls' if falls else 'rises'} from {first} to {last}, {seeds}"


def _share(count: int, total: int) -> str:
    return f"all {total} seeds" if count == total else f"{count} of {total} seeds"
