"""Psi: its regions tile the range exactly, draws stay inside, omega is a distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbc.behavior import build_space, normalise
from lbc.config import BehaviorConfig


def test_the_paper_s_space():
    """Three taus in 20 regions of 0.2 in log(1 + tau), three omegas in 10 regions of 0.1."""
    space = build_space(BehaviorConfig(), 3)
    assert space.regions == (20, 20, 20, 10, 10, 10)
    tau, omega = space.dimensions[0], space.dimensions[3]
    np.testing.assert_allclose(tau.low[:, 0], np.arange(20) * 0.2, atol=1e-12)
    np.testing.assert_allclose(omega.high[:, 0], np.arange(1, 11) * 0.1)
    assert [d.name for d in space.dimensions] == ["tau_1", "tau_2", "tau_3", "omega_1", "omega_2", "omega_3"]
    assert [d.component for d in space.dimensions] == [0, 1, 2, 0, 1, 2]


@given(
    low=st.floats(0.0, 5.0),
    width=st.floats(0.01, 60.0),
    accuracy=st.floats(0.01, 1.0),
    scale=st.sampled_from(["log", "linear"]),
)
def test_regions_cover_the_range_exactly(low, width, accuracy, scale):
    high = low + width
    space = build_space(BehaviorConfig(tau_low=low, tau_high=high, tau_accuracy=accuracy, tau_scale=scale), 1)
    dimension = space.dimensions[0]
    assert float(dimension.value(0, 0.0)[0]) == pytest.approx(low, abs=1e-9)
    assert float(dimension.value(dimension.regions - 1, 1.0)[0]) == pytest.approx(high, rel=1e-9)
    np.testing.assert_array_equal(dimension.high[:-1], dimension.low[1:])  # neighbours touch
    widths = dimension.high - dimension.low
    assert (widths > 0).all() and (widths <= accuracy + 1e-6).all()
    assert np.ptp(widths) < 1e-9


@given(seed=st.integers(0, 2**32 - 1), grid=st.sampled_from(["independent", "simplex"]))
def test_a_draw_stays_inside_its_regions(seed, grid):
    rng = np.random.default_rng(seed)
    space = build_space(BehaviorConfig(omega_grid=grid), 3)
    regions = rng.integers(np.array(space.regions))
    psi = space.draw(regions, rng)
    assert psi.shape == (6,)
    for m in range(3):
        x = math.log1p(psi[m])
        assert space.dimensions[m].low[regions[m], 0] - 1e-12 <= x <= space.dimensions[m].high[regions[m], 0]
    assert (psi[3:] >= 0).all() and psi[3:].sum() == pytest.approx(1.0)


def test_draws_fill_a_region_and_centres_are_its_middle():
    rng = np.random.default_rng(0)
    space = build_space(BehaviorConfig(tau_scale="linear", tau_low=0.0, tau_high=10.0, tau_accuracy=2.0), 1)
    draws = np.array([space.draw(np.array([3]), rng)[0] for _ in range(500)])
    assert 6.0 <= draws.min() < 6.1 and 7.9 < draws.max() <= 8.0
    assert space.centre(np.array([3])).tolist() == [7.0, 1.0]
    log_space = build_space(BehaviorConfig(), 1)
    assert float(log_space.centre(np.array([0]))[0]) == pytest.approx(math.expm1(0.1))


def test_the_simplex_grid_has_66_points():
    space = build_space(BehaviorConfig(omega_grid="simplex"), 3)
    points = space.dimensions[-1].low
    assert space.regions == (20, 20, 20, 66)
    assert len({tuple(point) for point in points.round(6)}) == 66
    np.testing.assert_allclose(points.sum(1), 1.0)
    np.testing.assert_allclose(points * 10, (points * 10).round(), atol=1e-9)
    regions = np.array([0, 0, 0, 17])
    np.testing.assert_allclose(space.draw(regions, np.random.default_rng(0))[3:], points[17])


def test_selection_is_one_hot():
    space = build_space(BehaviorConfig(distillation="selection"), 4)
    assert space.regions[4:] == (4,)
    for m in range(4):
        psi = space.centre(np.array([0, 0, 0, 0, m]))
        np.testing.assert_array_equal(psi[4:], np.eye(4)[m])


def test_one_policy_has_one_dimension_and_all_the_weight():
    space = build_space(BehaviorConfig(), 1)
    assert space.regions == (20,)
    assert space.draw(np.array([5]), np.random.default_rng(0))[1:].tolist() == [1.0]


def test_components_may_outnumber_policies():
    assert build_space(BehaviorConfig(components=(0, 0, 0)), 1).regions == (20, 20, 20, 10, 10, 10)


def test_a_range_without_width_is_one_point():
    space = build_space(BehaviorConfig(tau_low=1.0, tau_high=1.0), 1)
    assert space.regions == (1,)
    assert float(space.draw(np.array([0]), np.random.default_rng(0))[0]) == pytest.approx(1.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5), st.floats(0.0, 0.2))
def test_normalised_weights_are_shares_above_the_floor(weights, floor):
    shares = normalise(np.array(weights), floor)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= floor - 1e-12).all()


def test_normalise_by_hand():
    """(1, 3) -> (1/4, 3/4); with floor 0.1: 0.1 + 0.8 share; zeros become equal."""
    np.testing.assert_allclose(normalise(np.array([1.0, 3.0])), [0.25, 0.75])
    np.testing.assert_allclose(normalise(np.array([1.0, 3.0]), 0.1), [0.3, 0.7])
    np.testing.assert_allclose(normalise(np.zeros(4)), 0.25)


def test_the_floor_reaches_psi_and_never_exceeds_an_equal_share():
    rng = np.random.default_rng(0)
    space = build_space(BehaviorConfig(omega_floor=0.1), 3)
    for _ in range(50):
        psi = space.draw(rng.integers(np.array(space.regions)), rng)
        assert psi[3:].min() >= 0.1 - 1e-12
    crowded = build_space(BehaviorConfig(omega_floor=0.5), 3)
    np.testing.assert_allclose(crowded.centre(np.array([0, 0, 0, 9, 0, 0]))[3:], 1 / 3)
