"""Sentences claim what the seeds show, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from lbc.reporting.curves import Curve
from lbc.studies.findings import best, compared, first_and_last, moved, side, spread_of


def seeds(*values: float) -> np.ndarray:
    return np.array(values)


def test_only_intervals_that_do_not_overlap_tell_two_variants_apart() -> None:
    assert side(seeds(5, 6, 7), seeds(1, 2, 3)) == 1
    assert side(seeds(1, 2, 3), seeds(5, 6, 7)) == -1
    assert side(seeds(1, 2, 6), seeds(5, 6, 7)) == 0
    assert side(seeds(9), seeds(1, 2, 3)) == 0  # one seed says nothing about chance
    many = np.random.default_rng(0).normal(0.0, 1.0, 40)
    assert side(many, many + 5.0) == -1
    assert side(many, many + 0.1) == 0


def test_a_comparison_names_everybody_once_and_what_chance_could_do() -> None:
    finals = {
        "main": seeds(5, 6, 7),
        "worse": seeds(1, 2, 3),
        "alike": seeds(4, 5, 6),
        "better": seeds(8, 9, 10),
    }
    text = compared("main", finals)
    assert "main: 6.00 [5.00, 7.00]." in text
    assert "Below it with every seed: worse (2.00 [1.00, 3.00])." in text
    assert "Above it with every seed: better (9.00 [8.00, 10.00])." in text
    assert "Not told apart from it, because the seeds overlap: alike (5.00 [4.00, 6.00])." in text
    # 3 and 3 seeds: 20 orders, of which two are apart
    assert "by chance once in 10 comparisons of 3 with 3 seeds, and there are 3 comparisons here" in text


def test_single_seeds_are_compared_without_a_claim() -> None:
    text = compared("main", {"main": seeds(5), "other": seeds(1)})
    assert text == (
        "main: 5.00. Not told apart from it, because a single seed says nothing about chance: other (1.00)."
    )
    assert "nothing to compare" in compared("main", {"main": seeds(5)})
    assert "chance" not in compared("main", {"main": seeds(5, 6), "alike": seeds(5, 6)})


def test_the_interval_of_many_seeds_is_not_called_every_seed() -> None:
    values = np.linspace(0.0, 1.0, 8)
    text = compared("main", {"main": values + 5.0, "worse": values})
    assert "Below it with an interval that does not overlap" in text and "chance" not in text


def test_numbers_of_a_curve() -> None:
    frames = np.arange(1.0, 101.0)
    falling = Curve(frames, np.where(frames <= 10.9, 2.0, np.where(frames >= 90.0, 0.5, 1.0)), 1.0)
    assert first_and_last(falling) == pytest.approx((2.0, 0.5))
    rising = Curve(frames, frames, 1.0)
    assert moved([falling]) == "falls from 2.00 to 0.50, in its only seed"
    assert moved([falling, falling, rising]).endswith("in 2 of 3 seeds")
    assert moved([rising, rising]).startswith("rises from 5.50 to 95.00, in all 2 seeds")


def test_small_helpers() -> None:
    assert best({"a": seeds(1, 2), "b": seeds(3)}) == "b"
    assert spread_of(seeds(3), lambda x: f"{x:.0f}%") == "3%"
