from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lbc.scores import aggregate, iqm, mean, median
from tests.oracles import scores as oracle

values = st.floats(-1e4, 1e4).map(lambda value: round(value, 3))
ragged = st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=12)


def arrays(games: Sequence[Sequence[float]]) -> list[np.ndarray]:
    return [np.array(seeds) for seeds in games]


@given(ragged)
def test_against_the_slow_ones(games: list[list[float]]) -> None:
    assert mean(arrays(games)) == pytest.approx(oracle.mean(games), abs=1e-6)
    assert median(arrays(games)) == pytest.approx(oracle.median(games), abs=1e-6)
    assert iqm(arrays(games)) == pytest.approx(oracle.iqm(games), abs=1e-6)


@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 2**31))
def test_with_equal_seeds_the_iqm_is_a_trimmed_mean_of_everything(seeds: int, games: int, seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(games, seeds))
    assert iqm(list(scores)) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))


@given(ragged, st.floats(0.1, 10.0), st.floats(-100.0, 100.0), st.randoms(use_true_random=False))
def test_unit_and_order_do_not_matter(
    games: list[list[float]], unit: float, zero: float, rng: object
) -> None:
    moved = [[unit * score + zero for score in reversed(seeds)] for seeds in games]
    rng.shuffle(moved)  # type: ignore[attr-defined]
    for metric in (mean, median, iqm):
        assert metric(arrays(moved)) == pytest.approx(unit * metric(arrays(games)) + zero, abs=1e-6)


@given(ragged)
def test_every_aggregate_lies_between_the_extremes(games: list[list[float]]) -> None:
    everything = [score for seeds in games for score in seeds]
    found = aggregate(arrays(games), repetitions=50)
    for estimate in (found.mean, found.median, found.iqm):
        assert min(everything) - 1e-6 <= estimate.value <= max(everything) + 1e-6
        if estimate.low is not None and estimate.high is not None:
            assert min(everything) - 1e-6 <= estimate.low <= estimate.high <= max(everything) + 1e-6


def test_a_game_with_many_seeds_counts_like_one_with_few() -> None:
    assert mean([np.array([0.0] * 9), np.array([10.0])]) == 5.0
    # Of ten entries two go at either end; the nine zeros together weigh as much as the ten.
    assert iqm([np.array([0.0] * 9), np.array([10.0])]) == pytest.approx(5.0)


def test_the_bootstrap_draws_seeds_inside_their_game() -> None:
    games = [[0.0, 1.0], [100.0, 110.0]]
    found = aggregate(arrays(games))
    possible = oracle.all_resamples(oracle.mean, games)  # 16 ways; the rarest has 1 in 16, more than a tail
    assert (found.mean.low, found.mean.high) == (possible[0], possible[-1]) == (50.0, 55.5)
    assert found.resampled == "seeds"


def test_the_width_of_an_interval_is_that_of_the_mean() -> None:
    scores = np.random.default_rng(1).normal(size=(40, 5))
    found = aggregate(list(scores), repetitions=20_000)
    assert found.mean.low is not None and found.mean.high is not None
    error = np.sqrt((scores.var(axis=1) / 5).sum()) / 40  # of a mean over 40 games of means over 5 seeds
    assert (found.mean.high - found.mean.low) / 2 == pytest.approx(1.96 * error, rel=0.03)


def test_seeds_that_agree_leave_no_doubt() -> None:
    found = aggregate([np.array([3.0, 3.0]), np.array([8.0, 8.0])])
    assert (found.iqm.low, found.iqm.value, found.iqm.high) == (5.5, 5.5, 5.5)


def test_one_score_per_game_resamples_the_games() -> None:
    scores = np.random.default_rng(2).normal(size=57)
    found = aggregate(list(scores.reshape(57, 1)), repetitions=20_000)
    assert found.resampled == "games"
    assert found.mean.low is not None and found.mean.high is not None
    assert (found.mean.high - found.mean.low) / 2 == pytest.approx(
        1.96 * scores.std() / np.sqrt(57), rel=0.03
    )


def test_one_score_has_no_interval() -> None:
    found = aggregate([np.array([5.0])])
    assert (found.mean.value, found.mean.low, found.mean.high, found.resampled) == (5.0, None, None, "")


def test_the_same_scores_give_the_same_interval() -> None:
    scores = arrays([[1.0, 5.0], [2.0, 9.0], [4.0, 4.5]])
    assert aggregate(scores) == aggregate(scores)


@pytest.mark.parametrize("scores", [[], [np.array([1.0]), np.array([])], [np.ones((2, 2))]])
def test_nothing_to_aggregate_is_a_mistake(scores: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        mean(scores)


# Three seeds of five games, and what rliable 1.2.0 makes of them (20,000 repetitions, stratified).
RUNS = [
    [10.0, 14.0, 9.0],
    [250.0, 180.0, 300.0],
    [97.0, 103.0, 99.0],
    [1200.0, 60.0, 900.0],
    [40.0, 75.0, 58.0],
]
RLIABLE = {
    "mean": (226.33333333333334, 96.39833333333337, 318.8666666666667),
    "median": (99.66666666666667, 63.333333333333336, 103.0),
    "iqm": (106.88888888888889, 73.77777777777777, 147.55555555555554),
}


@pytest.mark.parametrize("name", RLIABLE)
def test_what_rliable_finds(name: str) -> None:
    value, low, high = RLIABLE[name]
    found = getattr(aggregate(arrays(RUNS), repetitions=20_000), name)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.low == pytest.approx(low, abs=0.03 * (high - low))  # both draw at random
    assert found.high == pytest.approx(high, abs=0.03 * (high - low))
