"""The recurrent core: torch's LSTM step by step, with resets inside a sequence."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lbc.models.core import NoCore, RecurrentCore

INPUTS, UNITS = 5, 4


@pytest.fixture
def core() -> RecurrentCore:
    torch.manual_seed(0)
    return RecurrentCore(INPUTS, UNITS).double()


def rows(t: int, b: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randn(t, b, INPUTS, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def never(t: int, b: int = 2) -> torch.Tensor:
    return torch.zeros(t, b, dtype=torch.bool)


def test_without_resets_it_is_torch_s_lstm(core):
    """Same order of gates (input, forget, cell, output); torch keeps a second bias, zero here."""
    nn.init.normal_(core.input.bias)
    reference = nn.LSTM(INPUTS, UNITS).double()
    with torch.no_grad():
        reference.weight_ih_l0.copy_(core.input.weight)
        reference.weight_hh_l0.copy_(core.hidden.weight)
        reference.bias_ih_l0.copy_(core.input.bias)
        reference.bias_hh_l0.zero_()
    x, state = rows(7), torch.randn(2, 2, UNITS, dtype=torch.float64)
    expected, (h, c) = reference(x, (state[:1], state[1:]))
    output, after = core(x, never(7), state)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(after, torch.cat([h, c]))


def test_a_reset_inside_equals_two_sequences(core):
    """Environment 0 restarts at step 3, environment 1 never; both at their own time."""
    x, first = rows(7), never(7)
    first[3, 0] = True
    state = torch.randn(2, 2, UNITS, dtype=torch.float64)
    output, after = core(x, first, state)
    before, _ = core(x[:3, :1], never(3, 1), state[:, :1])
    behind, last = core(x[3:, :1], never(4, 1), core.initial_state(1))
    torch.testing.assert_close(output[:, :1], torch.cat([before, behind]))
    torch.testing.assert_close(after[:, :1], last)
    untouched, _ = core(x[:, 1:], never(7, 1), state[:, 1:])
    torch.testing.assert_close(output[:, 1:], untouched)


def test_a_reset_at_the_first_step_forgets_the_given_state(core):
    x, first = rows(3), never(3)
    first[0] = True
    output, _ = core(x, first, torch.full((2, 2, UNITS), 5.0, dtype=torch.float64))
    expected, _ = core(x, never(3), core.initial_state(2))
    torch.testing.assert_close(output, expected)


def test_no_gradient_crosses_a_reset(core):
    x = rows(4).requires_grad_()
    first = never(4)
    first[2] = True
    output, _ = core(x, first, core.initial_state(2))
    output[3].sum().backward()
    assert not x.grad[:2].any() and x.grad[2].any()


def test_a_sequence_in_chunks_equals_the_whole(core):
    x, first = rows(8), never(8)
    first[5, 1] = True
    whole, last = core(x, first, core.initial_state(2))
    state, parts = core.initial_state(2), []
    for chunk in (slice(0, 1), slice(1, 4), slice(4, 8)):
        output, state = core(x[chunk], first[chunk], state)
        parts.append(output)
    torch.testing.assert_close(torch.cat(parts), whole)
    torch.testing.assert_close(state, last)


def test_every_gate_starts_orthogonal_without_bias(core):
    for weight in (core.input.weight, core.hidden.weight):
        for gate in weight.detach().chunk(4):
            torch.testing.assert_close(gate @ gate.t(), torch.eye(UNITS).double(), atol=1e-6, rtol=0)
    assert not core.input.bias.any()
    assert core.hidden.bias is None


def test_without_memory_features_pass_through():
    core = NoCore(INPUTS)
    x, state = rows(3), core.initial_state(2)
    output, after = core(x, never(3), state)
    assert output is x and after is state and state.shape == (2, 2, 0)
