from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lbc.scores import breaks_record, game_time, hns, hwrns, learning_efficiency, saber
from tests.oracles import scores as oracle

numbers = st.floats(-1e6, 1e6)


@given(numbers, numbers, numbers)
def test_a_score_is_a_share_of_the_way_from_chance_to_the_reference(
    score: float, random: float, reference: float
) -> None:
    assume(abs(reference - random) > 1e-3)
    expected = oracle.normalised(score, random, reference)
    assert hns(score, random, reference) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert hwrns(score, random, reference) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert saber(score, random, reference) == pytest.approx(min(expected, 200.0), rel=1e-9, abs=1e-6)


@given(numbers, numbers)
def test_chance_is_zero_and_the_reference_a_hundred(random: float, reference: float) -> None:
    assume(abs(reference - random) > 1e-3)
    assert hns(random, random, reference) == 0.0
    assert hns(reference, random, reference) == pytest.approx(100.0)


def test_saber_is_cut_off_above_only() -> None:
    assert saber(np.array([-500.0, 150.0, 1000.0]), 0.0, 100.0).tolist() == [-500.0, 150.0, 200.0]


def test_a_record_that_is_equalled_counts() -> None:
    assert breaks_record(21.0, 21.0)
    assert not breaks_record(20.99, 21.0)


def test_cost() -> None:
    assert game_time(60 * 60 * 60 * 24) == 1.0  # 60 frames for every second of a day
    assert learning_efficiency(47.6217, 1e11) == pytest.approx(4.76217e-10)
