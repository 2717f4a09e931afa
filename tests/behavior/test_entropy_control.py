"""f_tau: Boltzmann and epsilon-greedy against literal versions, and at their ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lbc.behavior import boltzmann, epsilon_greedy
from tests.oracles import behavior as oracle

preferences = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=6)


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@given(preferences, st.floats(0.0, 60.0))
def test_boltzmann_equals_the_literal_softmax(phi, tau):
    probabilities = boltzmann(tensor(phi), tensor(tau)).exp()
    np.testing.assert_allclose(probabilities, oracle.softmax(phi, tau), rtol=1e-9, atol=1e-12)


@given(preferences)
def test_tau_zero_is_uniform(phi):
    log_pi = boltzmann(tensor(phi), tensor(0.0))
    np.testing.assert_allclose(log_pi, -math.log(len(phi)), rtol=0, atol=1e-12)


def test_tau_large_is_argmax_and_tau_multiplies():
    """At tau = e^4 - 1 a lead of 0.5 leaves e^-26.8 for the others; at tau = 1, e^-0.5."""
    phi = tensor([0.1, 0.6, -0.4])
    probabilities = boltzmann(phi, tensor(math.exp(4.0) - 1.0)).exp()
    np.testing.assert_allclose(probabilities, [0.0, 1.0, 0.0], atol=1e-11)
    log_pi = boltzmann(phi, tensor(1.0))
    assert float(log_pi[1] - log_pi[0]) == pytest.approx(0.5), "greater tau means a greater lead"
    assert float((lambda x: x[1] - x[0])(boltzmann(phi, tensor(3.0)))) == pytest.approx(1.5)


def test_one_tau_per_leading_index():
    phi = tensor([[1.0, 2.0], [1.0, 2.0]])
    log_pi = boltzmann(phi, tensor([0.0, 2.0]))
    np.testing.assert_allclose(log_pi.exp(), [[0.5, 0.5], oracle.softmax([1.0, 2.0], 2.0)])


@given(preferences, st.floats(0.0, 1.0))
def test_epsilon_greedy_equals_the_literal_version(phi, epsilon):
    probabilities = epsilon_greedy(tensor(phi), tensor(epsilon)).exp()
    np.testing.assert_allclose(probabilities, oracle.epsilon_greedy(phi, epsilon), rtol=1e-12, atol=1e-15)


def test_epsilon_greedy_shares_ties_and_is_minus_infinity_where_impossible():
    """Two best of four: 0.9 / 2 + 0.1 / 4 = 0.475 each, 0.025 for the others; epsilon 0 leaves nothing."""
    phi = tensor([2.0, 1.0, 2.0, 0.0])
    np.testing.assert_allclose(epsilon_greedy(phi, tensor(0.1)).exp(), [0.475, 0.025, 0.475, 0.025])
    log_pi = epsilon_greedy(phi, tensor(0.0))
    assert log_pi.tolist() == [pytest.approx(-math.log(2)), -math.inf, pytest.approx(-math.log(2)), -math.inf]
    np.testing.assert_allclose(epsilon_greedy(phi, tensor(1.0)).exp(), 0.25)
