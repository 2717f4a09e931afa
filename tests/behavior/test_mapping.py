"""F_psi and g_omega: the mixture against its literal sum, and the identities that make a subspace."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lbc.behavior import build_mapping, mixture, responsibility
from lbc.config import BehaviorConfig
from tests.oracles import behavior as oracle

MAPPING = build_mapping(BehaviorConfig(), 3)


@st.composite
def behaviors(draw):
    """phi [3, A] and psi [6] of three policies."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    phi = rng.normal(0.0, draw(st.sampled_from([0.05, 1.0, 3.0])), (3, draw(st.integers(2, 6))))
    tau = np.expm1(rng.uniform(0.0, 3.0, 3))
    omega = rng.random(3)
    omega[draw(st.integers(0, 2))] *= draw(st.sampled_from([0.0, 1.0]))  # a component may be unused
    return torch.from_numpy(phi), torch.from_numpy(np.concatenate([tau, omega / omega.sum()]))


@given(behaviors())
def test_mu_equals_the_literal_mixture_and_is_normalised(data):
    phi, psi = data
    tau, omega = psi[:3].tolist(), psi[3:].tolist()
    components = [oracle.softmax(p, t) for p, t in zip(phi.tolist(), tau, strict=True)]
    log_mu = MAPPING.log_mu(phi, psi)
    np.testing.assert_allclose(log_mu.exp(), oracle.mixture(components, omega), rtol=1e-9, atol=1e-12)
    assert float(torch.logsumexp(log_mu, -1)) == pytest.approx(0.0, abs=1e-12)


@given(behaviors(), st.integers(0, 2))
def test_a_one_hot_omega_is_that_policy(data, m):
    phi, psi = data
    psi[3:] = torch.eye(3, dtype=torch.float64)[m]
    expected = torch.log_softmax(psi[m] * phi[m], -1)
    torch.testing.assert_close(MAPPING.log_mu(phi, psi), expected, rtol=1e-12, atol=1e-12)


@given(behaviors())
def test_tau_zero_is_uniform_whatever_omega(data):
    phi, psi = data
    psi[:3] = 0.0
    log_mu = MAPPING.log_mu(phi, psi)
    torch.testing.assert_close(log_mu, torch.full_like(log_mu, -math.log(len(log_mu))))


@given(behaviors(), behaviors())
def test_equal_policies_make_omega_irrelevant_but_not_tau(data, other):
    phi, psi = data
    phi[:] = torch.arange(phi.shape[1], dtype=torch.float64)
    psi[:3] = 2.0
    another = psi.clone()
    another[3:] = other[1][3:]
    torch.testing.assert_close(MAPPING.log_mu(phi, psi), MAPPING.log_mu(phi, another))
    another[:3] = 1.0
    assert not torch.allclose(MAPPING.log_mu(phi, psi), MAPPING.log_mu(phi, another), atol=1e-3)


def test_tiny_weights_and_far_off_components_stay_exact():
    """A component that gives an action e^-200 does not spoil it: mu is the other's share."""
    log_pi = torch.tensor([[0.0, -200.0], [-0.1, math.log1p(-math.exp(-0.1))]], dtype=torch.float64)
    log_mu = mixture(log_pi, torch.tensor([1.0 - 1e-9, 1e-9], dtype=torch.float64))
    assert float(log_mu[1]) == pytest.approx(math.log(1e-9) + math.log1p(-math.exp(-0.1)), rel=1e-12)
    one_hot = mixture(log_pi, torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert one_hot.tolist() == [0.0, -200.0]


def test_psi_of_every_environment_and_time_is_its_own():
    """[T, E] of psi against one at a time."""
    rng = np.random.default_rng(0)
    phi = torch.from_numpy(rng.normal(size=(3, 4, 2, 5)))
    psi = torch.from_numpy(np.concatenate([rng.random((4, 2, 3)) * 5, rng.dirichlet(np.ones(3), (4, 2))], -1))
    together = MAPPING.log_mu(phi, psi)
    for t in range(4):
        for e in range(2):
            torch.testing.assert_close(together[t, e], MAPPING.log_mu(phi[:, t, e], psi[t, e]))


def test_three_components_over_one_policy():
    """'Reduced H': one policy, three temperatures."""
    mapping = build_mapping(BehaviorConfig(components=(0, 0, 0)), 1)
    phi, tau, omega = [0.3, -0.2, 0.1], [0.0, 1.0, 30.0], [0.2, 0.3, 0.5]
    log_mu = mapping.log_mu(
        torch.tensor([phi], dtype=torch.float64), torch.tensor(tau + omega, dtype=torch.float64)
    )
    expected = oracle.mixture([oracle.softmax(phi, t) for t in tau], omega)
    np.testing.assert_allclose(log_mu.exp(), expected, rtol=1e-9)


def test_components_name_the_policy_behind_them():
    mapping = build_mapping(BehaviorConfig(components=(1, 0, 1)), 2)
    phi, tau, omega = [[0.3, -0.2, 0.1], [1.0, 0.0, -1.0]], [1.0, 2.0, 5.0], [0.2, 0.3, 0.5]
    psi = torch.tensor(tau + omega, dtype=torch.float64)
    expected = [oracle.softmax(phi[policy], t) for policy, t in zip((1, 0, 1), tau, strict=True)]
    mu = mapping.log_mu(torch.tensor(phi, dtype=torch.float64), psi).exp()
    np.testing.assert_allclose(mu, oracle.mixture(expected, omega), rtol=1e-9)


def test_entropy_control_is_composed_by_name():
    mapping = build_mapping(BehaviorConfig(entropy_control="epsilon_greedy", tau_high=1.0), 2)
    phi = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    mu = mapping.log_mu(phi, torch.tensor([0.2, 0.0, 0.25, 0.75], dtype=torch.float64)).exp()
    np.testing.assert_allclose(mu, [0.25 * 0.9, 0.25 * 0.1 + 0.75])


@given(behaviors())
def test_responsibilities_are_shares_of_the_action(data):
    phi, psi = data
    log_components, log_mu = MAPPING.log_components(phi, psi), MAPPING.log_mu(phi, psi)
    for a in range(phi.shape[1]):
        shares = responsibility(log_components[:, a], psi[3:], log_mu[a])
        expected = [w * math.exp(x) for w, x in zip(psi[3:].tolist(), log_components[:, a], strict=True)]
        np.testing.assert_allclose(shares, np.array(expected) / sum(expected), rtol=1e-9, atol=1e-12)
        assert float(shares.sum()) == pytest.approx(1.0)
