"""V-trace against its defining sum, against numbers worked out by hand, and at its corners."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lbc.targets import importance_ratios, vtrace
from tests.oracles import traces


def tensor(*rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def column(*values) -> torch.Tensor:
    """[T, 1]: one environment."""
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


@st.composite
def trajectories(draw):
    """Random [T, B] data with ends inside: kind 0 goes on, 1 terminates, 2 is not real (a restart)."""
    t, b = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = draw(st.sampled_from([0.0, 0.3, 1.0]))  # all one episode, some ends, nothing but ends
    kind = np.where(rng.random((t, b)) < ends, rng.integers(1, 3, (t, b)), 0)
    real = kind != 2
    discount = np.where(kind == 1, 0.0, draw(st.sampled_from([0.9, 0.997, 1.0])))
    ratio = np.exp(rng.normal(0.0, 1.0, (t, b)))
    return {
        "v": rng.normal(0.0, 3.0, (t + 1, b)),
        "r": rng.normal(0.0, 2.0, (t, b)),
        "d": discount,
        "rho": np.where(real, np.minimum(ratio, 1.05), 0.0),
        "c": np.where(real, np.minimum(ratio, 0.9), 0.0),
    }


@given(trajectories())
def test_targets_and_advantages_equal_the_defining_sum(data):
    target, advantage = vtrace(*(torch.from_numpy(x) for x in data.values()))
    for b in range(data["r"].shape[1]):
        lists = [x[:, b].tolist() for x in data.values()]
        for t in range(len(data["r"])):
            assert float(target[t, b]) == pytest.approx(traces.vtrace_target(*lists, t), rel=1e-9, abs=1e-9)
            expected = traces.vtrace_advantage(*lists, t)
            assert float(advantage[t, b]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_three_steps_by_hand():
    """V = (1, 2, 3, 4), r = (1, 0, 2), d = 0.5, rho = (1, 0.5, 1), c = (0.8, 0.5, 1).

    delta_2 = 1.0 (2 + 0.5 * 4 - 3)  =  1       v_2 = 3 + 1                         = 4
    delta_1 = 0.5 (0 + 0.5 * 3 - 2)  = -0.25    v_1 = 2 - 0.25 + 0.5 * 0.5 * 1      = 2
    delta_0 = 1.0 (1 + 0.5 * 2 - 1)  =  1       v_0 = 1 + 1 + 0.5 * 0.8 * (2 - 2)   = 2
    adv_2 = 2 + 0.5 * 4 - 3 = 1;  adv_1 = 0 + 0.5 * 4 - 2 = 0;  adv_0 = 1 + 0.5 * 2 - 1 = 1
    """
    result = vtrace(
        column(1, 2, 3, 4), column(1, 0, 2), column(0.5, 0.5, 0.5), column(1, 0.5, 1), column(0.8, 0.5, 1)
    )
    torch.testing.assert_close(result.target, column(2, 2, 4))
    torch.testing.assert_close(result.advantage, column(1, 0, 1))


def test_termination_ends_the_sum_and_truncation_bootstraps_from_the_final_observation():
    """Both columns: rows 0, 1 | restart at row 2.  gamma = 0.5, V = (1, 10, 100, 1000), r_1 = 2, r_3 = 4.

    Terminated at row 1: v_0 = r_1 = 2.   Truncated at row 1: v_0 = r_1 + 0.5 V_1 = 7.
    Transition 1 -> 2 is not real, so row 1 keeps its own value 10, and nothing flows over the border.
    Transition 2 -> 3: v_2 = 4 + 0.5 * 1000 = 504 in both.
    """
    v = tensor([1, 1], [10, 10], [100, 100], [1000, 1000])
    r = tensor([2, 2], [0, 0], [4, 4])
    d = tensor([0.0, 0.5], [0.5, 0.5], [0.5, 0.5])
    ratio = tensor([1, 1], [0, 0], [1, 1])
    result = vtrace(v, r, d, ratio, ratio)
    torch.testing.assert_close(result.target, tensor([2, 7], [10, 10], [504, 504]))
    torch.testing.assert_close(result.advantage[0], torch.tensor([1.0, 6.0], dtype=torch.float64))


@given(trajectories())
def test_ratios_of_one_give_the_n_step_return(data):
    one = torch.ones(data["r"].shape, dtype=torch.float64)
    target = vtrace(*(torch.from_numpy(data[x]) for x in "vrd"), one, one).target
    for b in range(data["r"].shape[1]):
        v, r, d = (data[x][:, b].tolist() for x in "vrd")
        for t in range(len(r)):
            expected = traces.discounted_return(r, d, v[-1], t)
            assert float(target[t, b]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(trajectories())
def test_a_cut_trace_gives_one_step_targets(data):
    """lambda = 0 makes c = 0: TD(0), with the step towards it scaled by rho."""
    v, r, d, rho = (torch.from_numpy(data[x]) for x in ("v", "r", "d", "rho"))
    target = vtrace(v, r, d, rho, torch.zeros_like(rho)).target
    torch.testing.assert_close(target, v[:-1] + rho * (r + d * v[1:] - v[:-1]))


def test_discount_zero_leaves_rewards_alone():
    rng = np.random.default_rng(0)
    v, r = torch.from_numpy(rng.normal(size=(6, 2))), torch.from_numpy(rng.normal(size=(5, 2)))
    one = torch.ones_like(r)
    result = vtrace(v, r, torch.zeros_like(r), one, one)
    torch.testing.assert_close(result.target, r)
    torch.testing.assert_close(result.advantage, r - v[:-1])


def test_a_single_step():
    """v_0 = 1 + 0.5 (3 + 0.9 * 2 - 1) = 2.9;  adv_0 = 3 + 0.9 * 2 - 1 = 3.8, without the ratio."""
    result = vtrace(column(1, 2), column(3), column(0.9), column(0.5), column(0.5))
    torch.testing.assert_close(result.target, column(2.9))
    torch.testing.assert_close(result.advantage, column(3.8))


def test_what_lies_behind_an_end_cannot_be_seen():
    """Everything after a terminal transition may change without changing the targets before it."""
    rng = np.random.default_rng(1)
    v, r, ratio = (torch.from_numpy(rng.normal(size=(n, 1)) ** 2) for n in (7, 6, 6))
    d = torch.full((6, 1), 0.9, dtype=torch.float64)
    d[2] = 0.0  # row 3 is terminal
    ratio[3] = 0.0  # row 4 is the first of the next episode
    before = vtrace(v, r, d, ratio, ratio)
    v[3:], r[3:] = 77.0, -55.0
    after = vtrace(v, r, d, ratio, ratio)
    torch.testing.assert_close(after.target[:3], before.target[:3], rtol=0, atol=0)
    torch.testing.assert_close(after.advantage[:3], before.advantage[:3], rtol=0, atol=0)
    assert not torch.allclose(after.target[3:], before.target[3:])


def test_ratios_are_clipped_and_zero_where_not_real():
    """pi/mu = 2, 0.5, 3 (not real), and a far-off row whose exponential overflows."""
    log_pi = torch.tensor([[np.log(0.8)], [np.log(0.2)], [np.log(0.9)], [0.0]])
    log_mu = torch.tensor([[np.log(0.4)], [np.log(0.4)], [np.log(0.3)], [-1e4]])
    real = torch.tensor([[True], [True], [False], [False]])
    ratio = importance_ratios(log_pi, log_mu, real, clip=1.05)
    torch.testing.assert_close(ratio, torch.tensor([[1.05], [0.5], [0.0], [0.0]], dtype=torch.float64))
    assert float(importance_ratios(log_pi, log_mu, real, clip=10.0)[0, 0]) == pytest.approx(2.0)


def test_targets_carry_no_gradient():
    v = torch.randn(4, 2, requires_grad=True)
    r = torch.randn(3, 2, requires_grad=True)
    one = torch.ones(3, 2)
    result = vtrace(v, r, one, one, one)
    assert not result.target.requires_grad and not result.advantage.requires_grad


def test_a_missing_bootstrap_value_is_refused():
    with pytest.raises(AssertionError, match="3 values for 3 transitions"):
        vtrace(*[torch.zeros(3, 1)] * 5)
