from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbc.scores import ATARI_3_VAL, ATARI_5, estimate
from tests.oracles import scores as oracle

percents = st.floats(-300.0, 1e6)


@given(st.fixed_dictionaries(dict.fromkeys(ATARI_5, percents)))
def test_against_the_product_form(hns: dict[str, float]) -> None:
    assert estimate(hns, ATARI_5) == pytest.approx(oracle.estimated_median(hns, ATARI_5), rel=1e-9, abs=1e-9)


@given(st.fixed_dictionaries(dict.fromkeys(ATARI_3_VAL, percents)), st.sampled_from(sorted(ATARI_3_VAL)))
def test_a_better_game_never_lowers_it(hns: dict[str, float], game: str) -> None:
    before, after = estimate(hns, ATARI_3_VAL), estimate(hns | {game: hns[game] + 10.0}, ATARI_3_VAL)
    assert before is not None and after is not None
    assert after >= before


def test_below_chance_counts_as_chance() -> None:
    assert estimate(dict.fromkeys(ATARI_5, -50.0), ATARI_5) == pytest.approx(0.0)


def test_a_human_everywhere_is_nearly_a_human_median() -> None:
    assert estimate(dict.fromkeys(ATARI_5, 100.0), ATARI_5) == pytest.approx(101.0**0.96531 - 1.0)


def test_a_missing_game_leaves_no_estimate() -> None:
    assert estimate(dict.fromkeys([*ATARI_5][1:], 100.0), ATARI_5) is None


def test_nobody_tunes_on_what_is_tested() -> None:
    assert not set(ATARI_5) & set(ATARI_3_VAL)
