"""Retrace against its defining sum, against numbers worked out by hand, and at its corners."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lbc.targets import retrace, vtrace
from tests.oracles import traces


def column(*values) -> torch.Tensor:
    """[T, 1]: one environment."""
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


@st.composite
def trajectories(draw):
    """Random [T, B] data with ends inside: kind 0 goes on, 1 terminates, 2 is not real (a restart)."""
    t, b = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = draw(st.sampled_from([0.0, 0.3, 1.0]))
    kind = np.where(rng.random((t, b)) < ends, rng.integers(1, 3, (t, b)), 0)
    return {
        "q": rng.normal(0.0, 3.0, (t, b)),
        "expected_q": rng.normal(0.0, 3.0, (t + 1, b)),
        "r": rng.normal(0.0, 2.0, (t, b)),
        "d": np.where(kind == 1, 0.0, draw(st.sampled_from([0.9, 0.997, 1.0]))),
        "c": np.where(kind != 2, np.minimum(np.exp(rng.normal(0.0, 1.0, (t, b))), 1.05), 0.0),
    }


@given(trajectories())
def test_targets_equal_the_defining_sum(data):
    target = retrace(*(torch.from_numpy(x) for x in data.values()))
    for b in range(data["r"].shape[1]):
        lists = [x[:, b].tolist() for x in data.values()]
        for t in range(len(data["r"])):
            assert float(target[t, b]) == pytest.approx(traces.retrace_target(*lists, t), rel=1e-9, abs=1e-9)


def test_three_steps_by_hand():
    """Q = (1, 2, 3), E_pi Q = (9, 2, 4, 6), r = (1, 0, 2), d = 0.5, c = (7, 0.5, 1).

    G_2 = 2 + 0.5 * 6                         = 5
    G_1 = 0 + 0.5 (4 + 1.0 (5 - 3))           = 3
    G_0 = 1 + 0.5 (2 + 0.5 (3 - 2))           = 2.25
    c_0 and E_pi Q_0 play no part: the first action is given, not chosen.
    """
    q, expected_q = column(1, 2, 3), column(9, 2, 4, 6)
    target = retrace(q, expected_q, column(1, 0, 2), column(0.5, 0.5, 0.5), column(7, 0.5, 1))
    torch.testing.assert_close(target, column(2.25, 3, 5))


def test_termination_truncation_and_the_row_between_episodes():
    """gamma = 0.5, E_pi Q = (1, 10, 100, 1000), Q = (0, 5, 50), r = (2, 0, 4); row 2 is a restart.

    Terminated at row 1: G_0 = 2.   Truncated at row 1: G_0 = 2 + 0.5 * 10 = 7, since c_1 = 0.
    G_2 = 4 + 0.5 * 1000 = 504 in both.
    """
    expected_q = column(1, 10, 100, 1000).repeat(1, 2)
    q, r = column(0, 5, 50).repeat(1, 2), column(2, 0, 4).repeat(1, 2)
    d = torch.tensor([[0.0, 0.5], [0.5, 0.5], [0.5, 0.5]], dtype=torch.float64)
    c = column(1, 0, 1).repeat(1, 2)
    target = retrace(q, expected_q, r, d, c)
    torch.testing.assert_close(target[0], torch.tensor([2.0, 7.0], dtype=torch.float64))
    torch.testing.assert_close(target[2], torch.tensor([504.0, 504.0], dtype=torch.float64))


@given(trajectories())
def test_ratios_of_one_and_q_equal_to_its_expectation_give_the_n_step_return(data):
    """On-policy with Q(a) = E_pi Q, the corrections telescope."""
    expected_q = torch.from_numpy(data["expected_q"])
    one = torch.ones(data["r"].shape, dtype=torch.float64)
    target = retrace(expected_q[:-1], expected_q, *(torch.from_numpy(data[x]) for x in "rd"), one)
    for b in range(data["r"].shape[1]):
        r, d = data["r"][:, b].tolist(), data["d"][:, b].tolist()
        for t in range(len(r)):
            expected = traces.discounted_return(r, d, float(expected_q[-1, b]), t)
            assert float(target[t, b]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(trajectories())
def test_where_q_is_the_value_it_agrees_with_vtrace_on_policy(data):
    v = torch.from_numpy(data["expected_q"])
    r, d = torch.from_numpy(data["r"]), torch.from_numpy(data["d"])
    one = torch.ones_like(r)
    torch.testing.assert_close(retrace(v[:-1], v, r, d, one), vtrace(v, r, d, one, one).target)


@given(trajectories())
def test_a_cut_trace_gives_one_step_targets(data):
    q, expected_q, r, d = (torch.from_numpy(data[x]) for x in ("q", "expected_q", "r", "d"))
    target = retrace(q, expected_q, r, d, torch.zeros_like(r))
    torch.testing.assert_close(target, r + d * expected_q[1:])


def test_discount_zero_and_a_single_step():
    q, expected_q, r = column(1, 2), column(3, 4, 5), column(6, 7)
    torch.testing.assert_close(retrace(q, expected_q, r, column(0, 0), column(1, 1)), column(6, 7))
    torch.testing.assert_close(retrace(column(1), column(3, 4), column(6), column(0.5), column(1)), column(8))


def test_targets_carry_no_gradient():
    q, expected_q = torch.randn(3, 2, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    one = torch.ones(3, 2)
    assert not retrace(q, expected_q, one, one, one).requires_grad


def test_a_missing_expectation_is_refused():
    with pytest.raises(AssertionError, match="3 expectations for 3 actions"):
        retrace(*[torch.zeros(3, 1)] * 5)
