"""Explained variance of V against the returns that came."""

from __future__ import annotations

import numpy as np
import pytest

from lbc.actor import ReturnMonitor
from lbc.behavior import PolicyHyperParameters

POPULATION = (PolicyHyperParameters(0, 0.5, "identity"), PolicyHyperParameters(1, 1.0, "clip"))


def episode(
    monitor: ReturnMonitor,
    rewards: list[float],
    values: list[list[float]],
    truncated: bool = False,
    progress: float = 1.0,
    lost: tuple[int, ...] = (),
):
    """rewards arrive with rows 1..n, a life is lost at rows `lost`; values: [N][n + 1]."""
    for t in range(len(rewards) + 1):
        monitor.watch(
            np.array([rewards[t - 1] if t else 0.0]),
            np.array([t == 0]),
            np.array([t in lost]),
            np.array([[v[t]] for v in values]),
            {0: truncated} if t == len(rewards) else {},
            progress,
        )


def test_exact_values_explain_everything_and_constants_nothing():
    """Rewards (0, 4) and (0, -2).  Discounted by 1/2 the returns are (2, 4) and (-1, -2); clipped and
    undiscounted (1, 1) and (-1, -1).  What is said about the final observation does not count."""
    exact, constant = ReturnMonitor(POPULATION, envs=1), ReturnMonitor(POPULATION, envs=1)
    for rewards, first, second in (
        ([0.0, 4.0], [2.0, 4.0, 99.0], [1.0, 1.0, 99.0]),
        ([0.0, -2.0], [-1.0, -2.0, 99.0], [-1.0, -1.0, 99.0]),
    ):
        episode(exact, rewards, [first, second])
        episode(constant, rewards, [[0.5] * 3, [0.5] * 3])
    assert exact.explained_variance() == [pytest.approx(1.0)] * 2
    assert constant.explained_variance() == [pytest.approx(0.0)] * 2


def test_partial_explanation_by_hand():
    """Returns (1, 3) and values (1, 2): errors (0, 1) have variance 1/4, returns 1: 3/4 explained."""
    monitor = ReturnMonitor(POPULATION[:1], envs=1)
    episode(monitor, [1.0], [[1.0, 0.0]])
    episode(monitor, [3.0], [[2.0, 0.0]])
    assert monitor.explained_variance() == [pytest.approx(0.75)]


def test_returns_are_discounted_as_they_are_today():
    """Half of the run spent, the horizon halfway from 1 to 4 steps: 2, so that a discount of 1/2 is exact."""
    growing = (PolicyHyperParameters(0, 0.75, "identity", first_discount=0.0, ramp=1.0),)
    monitors = [ReturnMonitor(growing, envs=1) for _ in range(2)]
    for monitor, progress in zip(monitors, (0.5, 1.0), strict=True):
        for rewards, values in (([0.0, 4.0], [2.0, 4.0, 0.0]), ([0.0, -2.0], [-1.0, -2.0, 0.0])):
            episode(monitor, rewards, [values], progress=progress)
    now, later = (monitor.explained_variance()[0] for monitor in monitors)
    assert now == pytest.approx(1.0) and later is not None and later < 0.99


def test_a_lost_life_ends_what_counts_before_it_and_nothing_after():
    """Rewards 1, 2, 4, a life lost with the second: returns 2, 2, 4; without the loss 3, 4, 4."""
    exact, blind, cut = (ReturnMonitor(POPULATION[:1], envs=1) for _ in range(3))
    for sign in (1.0, -1.0):
        rewards, values = [sign, 2 * sign, 4 * sign], [2 * sign, 2 * sign, 4 * sign, 0.0]
        episode(exact, rewards, [values], lost=(2,))
        episode(blind, rewards, [values])
        episode(cut, rewards, [values], lost=(2,), truncated=True)  # what came before the loss is known
    assert exact.explained_variance() == cut.explained_variance() == [pytest.approx(1.0)]
    explained = blind.explained_variance()[0]
    assert explained is not None and explained < 0.99


def test_truncated_episodes_have_no_return():
    monitor = ReturnMonitor(POPULATION, envs=1)
    episode(monitor, [1.0, 2.0], [[0.0] * 3] * 2, truncated=True)
    assert monitor.explained_variance() == [None, None]


def test_equal_returns_leave_nothing_to_explain():
    monitor = ReturnMonitor(POPULATION[:1], envs=1)
    for _ in range(3):
        episode(monitor, [1.0], [[np.random.default_rng(0).random(), 0.0]])
    assert monitor.explained_variance() == [None]
