"""The voting bandits: score and vote against literal versions, ties, replacement, state."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lbc.controller import BanditPopulation, ucb_scores
from lbc.controller.bandits import top
from tests.oracles import voting

ONE = np.ones(1)


def chi_square(counts: np.ndarray) -> float:
    """Of counts against equal shares."""
    expected = counts.sum() / len(counts)
    return float(((counts - expected) ** 2 / expected).sum())


def population(regions=(10,), seed=0, **options) -> BanditPopulation:
    return BanditPopulation(tuple(regions), np.random.default_rng(seed), **options)


@st.composite
def histories(draw):
    """Returns of each region of one bandit; some regions unvisited, some returns equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.0, 1.0, 100.0]))
    return [list(rng.normal(-20.0, spread, rng.integers(0, 4))) for _ in range(draw(st.integers(1, 12)))]


@given(histories(), st.floats(0.0, 2.0))
def test_score_equals_the_literal_formula(history, c):
    counts = np.array([len(returns) for returns in history], dtype=float)
    sums = np.array([sum(returns) for returns in history])
    literal = history
    if len({x for returns in history for x in returns}) == 1:
        literal = [[0.0] * len(returns) for returns in history]  # equal up to rounding counts as equal
    expected = voting.ucb_scores(literal, c)
    np.testing.assert_allclose(ucb_scores(counts, sums, np.array(c)), expected, rtol=1e-6, atol=1e-6)


def test_score_by_hand():
    """Means 1, 3 and one unvisited region: mean 2, std 1, so z = -1, 1, 0.  N = 2, 1, 0: log(1 + 3) = log 4.

    Score = -1 + c sqrt(log 4 / 3), 1 + c sqrt(log 4 / 2), 0 + c sqrt(log 4 / 1), with c = 0.5.
    """
    score = ucb_scores(np.array([2.0, 1.0, 0.0]), np.array([2.0, 3.0, 0.0]), np.array(0.5))
    log4 = np.log(4.0)
    expected = [-1 + 0.5 * np.sqrt(log4 / 3), 1 + 0.5 * np.sqrt(log4 / 2), 0.5 * np.sqrt(log4)]
    np.testing.assert_allclose(score, expected)


def test_pulls_in_flight_lower_the_bonus_and_leave_the_mean():
    counts, sums, c = np.array([2.0, 1.0]), np.array([2.0, 3.0]), np.array(1.0)
    flying = ucb_scores(counts, sums, c, in_flight=np.array([0.0, 3.0]))
    log7 = np.log(7.0)  # 3 counted + 3 in flight + 1
    np.testing.assert_allclose(flying, [-1 + np.sqrt(log7 / 3), 1 + np.sqrt(log7 / 5)])


def test_equal_means_are_equal_despite_rounding():
    """0.1 summed ten times is not 1.0; the z-score must not blow that up."""
    counts = np.array([10.0, 1.0])
    sums = np.array([sum([0.1] * 10), 0.1])
    np.testing.assert_array_equal(ucb_scores(counts, sums, np.array(0.0)), 0.0)


def test_the_example_of_the_paper():
    """Seven bandits, D = 2, sampled 1,2,1,3,2,4,5; 1,1,2,2,1,1,4: arm 1 was sampled most, six times.

    The same fourteen votes, dealt so that no bandit names an arm twice; arms count from 1 there.
    """
    pairs = [(1, 2), (1, 2), (1, 2), (1, 2), (1, 4), (1, 3), (4, 5)]
    bandits = population(top_d=2, c_range=(0.0, 0.0))
    bandits.counts += 1.0
    for bandit, pair in enumerate(pairs):
        bandits.sums[0, bandit, [arm - 1 for arm in pair]] = 1.0
    vote = bandits.vote()
    assert vote.votes[0].tolist() == [6, 4, 1, 2, 1, 0, 0, 0, 0, 0]
    assert vote.regions.tolist() == [0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 6), st.integers(2, 12))
def test_vote_equals_the_literal_vote(seed, members, d, regions):
    """Distinct scores in every bandit, so only the last draw among equally voted regions is random."""
    rng = np.random.default_rng(seed)
    bandits = population((regions,), seed, population=members, top_d=d)
    bandits.counts[:] = rng.integers(1, 30, bandits.counts.shape)
    bandits.sums[:] = bandits.counts * rng.normal(0.0, 1.0, bandits.counts.shape)
    scores = ucb_scores(bandits.counts, bandits.sums, bandits.c)[0].tolist()
    effective = min(d, max(1, regions // 2))  # voting for most of the regions is voting for none
    _, votes = voting.vote(scores, effective, random.Random(0))
    vote = bandits.vote()
    assert vote.votes[0].tolist() == votes
    assert votes[vote.regions[0]] == max(votes)


def test_dimensions_vote_apart_and_never_for_regions_they_lack():
    bandits = population((3, 10))
    for _ in range(100):
        vote = bandits.vote()
        assert vote.votes[0, 3:].sum() == 0
        assert vote.votes.sum(1).tolist() == [7 * 1, 7 * 4]  # D = 1 of 3 regions, 4 of 10
        bandits.update(vote.regions, 1.0, np.ones(2))


def test_ties_within_a_bandit_are_uniform():
    """Nothing is known: each of 10 regions must get its share of 2,000 single votes.  0.999 quantile."""
    bandits = population(population=1, top_d=1)
    counts = np.bincount([bandits.vote().regions[0] for _ in range(2000)], minlength=10)
    assert chi_square(counts) < stats.chi2.ppf(0.999, df=9)


def test_ties_between_equally_voted_regions_are_uniform():
    """Two bandits, D = 2, disjoint favourites: regions 0, 1, 2, 3 have one vote each.  0.999 quantile."""
    bandits = population(population=2, top_d=2, c_range=(0.0, 0.0))
    bandits.counts += 1.0
    bandits.sums[0, 0, [0, 1]] = bandits.sums[0, 1, [2, 3]] = 1.0
    winners = np.bincount([bandits.vote().regions[0] for _ in range(2000)], minlength=10)
    assert winners[4:].sum() == 0
    assert chi_square(winners[:4]) < stats.chi2.ppf(0.999, df=3)


def test_top_takes_the_best_and_shares_the_border_among_equals():
    """d = 2 of scores (3, 1, 1, 0): region 0 always, regions 1 and 2 half the time each, 3 never."""
    rng = np.random.default_rng(0)
    marks = sum(top(np.array([3.0, 1.0, 1.0, 0.0]), np.array(2), rng).astype(int) for _ in range(2000))
    assert marks[0] == 2000 and marks[3] == 0
    assert chi_square(marks[1:3]) < stats.chi2.ppf(0.999, df=1)


def test_an_update_reaches_every_bandit_once():
    bandits = population((4, 6), population=3)
    bandits.update(np.array([2, 5]), 7.0, np.ones(2))
    expected = np.zeros((2, 3, 6))
    expected[0, :, 2] = expected[1, :, 5] = 1.0
    np.testing.assert_array_equal(bandits.counts, expected)
    np.testing.assert_array_equal(bandits.sums, 7.0 * expected)
    np.testing.assert_array_equal(bandits.squares, 49.0 * expected)
    assert bandits.episodes == 1 and (bandits.age == 1).all()


def test_a_weighted_update_counts_a_part_of_an_episode():
    bandits = population((4,), population=1)
    bandits.update(np.array([1]), 10.0, np.array([0.25]))
    assert bandits.counts[0, 0, 1] == 0.25 and bandits.sums[0, 0, 1] == 2.5
    assert bandits.sums[0, 0, 1] / bandits.counts[0, 0, 1] == 10.0, "the mean is of the full score"


def test_replacement_recreates_one_bandit_per_dimension_and_leaves_the_others():
    bandits = population((4, 6), replacement_interval=5)
    rng = np.random.default_rng(1)
    for episode in range(1, 21):
        before = {name: array.copy() for name, array in bandits.state().items()}
        regions = rng.integers([4, 6])
        bandits.update(regions, float(episode), np.ones(2))
        expected = before["counts"]
        expected[np.arange(2), :, regions] += 1
        changed = (bandits.counts != expected).any(-1)  # [K, P]
        fresh = bandits.age == 0
        new_c = bandits.c != before["c"]
        np.testing.assert_array_equal(changed, fresh)
        np.testing.assert_array_equal(new_c, fresh)
        assert fresh.sum(1).tolist() == ([1, 1] if episode % 5 == 0 else [0, 0])
        assert not bandits.counts[fresh].any() and not bandits.sums[fresh].any()
        assert not bandits.squares[fresh].any()
        assert (bandits.c >= 0.5).all() and (bandits.c <= 1.5).all()


def test_replacement_is_uniform_over_bandits():
    """Chi-square of 1,400 replacements among 7 bandits; 0.999 quantile."""
    bandits = population(replacement_interval=1)
    counts = np.zeros(7)
    for _ in range(1400):
        bandits.update(np.array([0]), 0.0, ONE)
        counts += bandits.age[0] == 0
    assert counts.sum() == 1400
    assert chi_square(counts) < stats.chi2.ppf(0.999, df=6)


def test_no_interval_means_no_replacement():
    bandits = population(replacement_interval=None, population=1)
    for _ in range(200):
        bandits.update(np.array([3]), 1.0, ONE)
    assert bandits.counts[0, 0, 3] == 200


def test_c_is_drawn_from_its_range_for_every_bandit():
    c = population((10,) * 6, c_range=(0.5, 1.5)).c
    assert c.shape == (6, 7) and len(np.unique(c)) == 42
    assert c.min() >= 0.5 and c.max() <= 1.5


def test_a_restored_population_makes_the_same_choices():
    def play(bandits: BanditPopulation, episodes: int) -> list[int]:
        chosen = []
        for _ in range(episodes):
            regions = bandits.vote().regions
            bandits.update(regions, float(-((regions[0] - 4) ** 2)), ONE)
            chosen.append(int(regions[0]))
        return chosen

    original = population(seed=3)
    play(original, 70)
    copy = population(seed=99)
    copy.restore(original.state())
    copy._rng.bit_generator.state = original._rng.bit_generator.state
    assert play(copy, 130) == play(original, 130)
    for name, array in original.state().items():
        assert isinstance(array, np.ndarray)
        np.testing.assert_array_equal(copy.state()[name], array)


def test_saved_state_is_a_copy():
    bandits = population()
    state = bandits.state()
    bandits.update(np.array([0]), 5.0, ONE)
    assert state["counts"].sum() == 0 and int(state["episodes"]) == 0


@pytest.mark.parametrize("members, d, interval", [(7, 4, 50), (1, 1, None)])
def test_the_best_arm_of_a_stationary_bandit_is_found(members, d, interval):
    """Ten arms a tenth of a noise apart each: the last 300 of 1,500 pulls lie in the best three.

    Chance would give 0.3; the vote for four spreads over neighbours by design.
    """
    bandits = population(seed=1, population=members, top_d=d, replacement_interval=interval)
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(1500):
        regions = bandits.vote().regions
        bandits.update(regions, rng.normal(0.3 * regions[0], 1.0), ONE)
        chosen.append(int(regions[0]))
    assert np.mean(np.array(chosen[-300:]) >= 7) > 0.7


def test_a_change_of_the_best_arm_is_followed():
    """The best arm moves from one end to the other; replacement forgets what was true before."""
    bandits = population(seed=2)
    rng = np.random.default_rng(0)
    shares = []
    for best in (9, 0):
        chosen = []
        for _ in range(1200):
            regions = bandits.vote().regions
            bandits.update(regions, rng.normal(-abs(regions[0] - best), 1.0), ONE)
            chosen.append(int(regions[0]))
        shares.append(np.mean(np.abs(np.array(chosen[-200:]) - best) <= 2))
    assert min(shares) > 0.7, "chance would give 0.3"
