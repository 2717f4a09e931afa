"""H: the reward shapings of the paper and how a population is put together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lbc.behavior import SHAPINGS, build_population
from lbc.config import PopulationConfig
from lbc.errors import UserError
from tests.oracles import behavior as oracle

LITERAL = {
    "sqrt": oracle.shape_sqrt,
    "log": oracle.shape_log,
    "tanh": oracle.shape_tanh,
    "fourth_root": oracle.shape_fourth_root,
}


@pytest.mark.parametrize("name", LITERAL)
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5))
def test_shapings_equal_the_literal_formulas(name, rewards):
    shaped = SHAPINGS[name](torch.tensor(rewards, dtype=torch.float64))
    np.testing.assert_allclose(shaped, [LITERAL[name](x) for x in rewards], rtol=1e-12, atol=1e-12)


def test_shapings_by_hand():
    """sqrt: +-(sqrt 4 - 1) +- 0.003;  log: 2 log 4 and -log 4;  tanh: 5 tanh 3 and 0.3 tanh -3."""
    x = torch.tensor([3.0, -3.0, 0.0], dtype=torch.float64)
    np.testing.assert_allclose(SHAPINGS["sqrt"](x), [1.003, -1.003, 0.0])
    np.testing.assert_allclose(SHAPINGS["log"](x), [2 * np.log(4), -np.log(4), 0.0])
    np.testing.assert_allclose(SHAPINGS["tanh"](x), [5 * np.tanh(3), -0.3 * np.tanh(3), 0.0])
    assert SHAPINGS["clip"](x).tolist() == [1.0, -1.0, 0.0]
    assert SHAPINGS["identity"](x).tolist() == [3.0, -3.0, 0.0]


@pytest.mark.parametrize("name", SHAPINGS)
def test_no_reward_stays_no_reward_and_order_is_kept(name):
    """An episode's first row has reward 0, and its shaped value enters the network as it is."""
    x = torch.linspace(-5.0, 5.0, 101, dtype=torch.float64)
    shaped = SHAPINGS[name](x)
    assert float(SHAPINGS[name](torch.zeros(()))) == 0.0
    assert (shaped.diff() >= 0).all() and shaped[-1] > shaped[0]


def test_the_population_pairs_discounts_with_shapings():
    population = build_population(PopulationConfig())
    assert [(p.index, p.discount, p.shaping) for p in population] == [
        (0, 0.997, "sqrt"),
        (1, 0.999, "log"),
        (2, 0.99, "tanh"),
    ]
    assert float(population[1].shape(torch.tensor(1.0))) == pytest.approx(2 * np.log(2))


def test_horizons_grow_evenly():
    """From 10 to 1,000 steps over half the run: a hundred in the middle of it."""
    config = PopulationConfig((0.999, 0.5), ("sqrt", "log"), first_discounts=(0.9, 0.5), discount_ramp=0.5)
    far, still = build_population(config)
    found = [far.discount_at(progress) for progress in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert found == pytest.approx([0.9, 0.99, 0.999, 0.999, 0.999]) and found[2] == 0.999
    assert still.discount_at(0.1) == pytest.approx(0.5)
    plain, *_ = build_population(PopulationConfig())
    assert {plain.discount_at(progress) for progress in (0.0, 0.3, 1.0)} == {0.997}
    shorter = build_population(dataclasses.replace(config, policies=1))
    assert [p.first_discount for p in shorter] == [0.9]


def test_every_policy_may_have_its_own_entropy_bonus():
    config = PopulationConfig(entropy_scalings=(0.1, 0.0, 0.2), policies=2)
    assert [p.entropy_scaling for p in build_population(config)] == [0.1, 0.0]
    assert [p.entropy_scaling for p in build_population(PopulationConfig())] == [None] * 3


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"first_discounts": (0.9,)}, "one per policy"),
        ({"entropy_scalings": (0.01, 0.1)}, "2 entropy_scalings; give one per policy"),
        ({"entropy_scalings": (0.01, 0.1, -0.1)}, "entropy_scalings"),
        ({"first_discounts": (0.9, 1.0, 0.9)}, "below 1"),
        ({"first_discounts": (0.9, 0.9, 0.9), "discounts": (0.9, 1.0, 0.9)}, "below 1"),
        ({"first_discounts": (0.9, -0.1, 0.9)}, "first_discounts"),
        ({"discount_ramp": 0.0}, "discount_ramp"),
    ],
)
def test_populations_that_do_not_fit_are_refused(wishes, why):
    with pytest.raises(UserError, match=why):
        PopulationConfig(**wishes)


def test_the_first_policies_alone():
    population = build_population(PopulationConfig(policies=2))
    assert population == build_population(PopulationConfig())[:2]
    for wrong in (-1, 4):
        with pytest.raises(UserError, match=rf"population.policies is {wrong}, but must be 0 \(all\) to 3"):
            PopulationConfig(policies=wrong)


def test_an_unknown_shaping_is_named_with_its_nearest():
    with pytest.raises(UserError, match=r"'sqr'.*Did you mean 'sqrt'"):
        build_population(PopulationConfig((0.9,), ("sqr",)))
