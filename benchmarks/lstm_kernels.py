"""A candidate for the recurrent core on a GPU: its steps as Triton kernels, one launch each way.

A program owns a block of rows and units: it multiplies their share of the recurrent product and goes on to
gates, cell and output without leaving the chip.  Products run in the type of the weight, all else in float32.
A reset is a closed forget gate (-inf before the sigmoid) and an output that the next step reads as zero.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

State = Tensor  # [2, B, units]: hidden and cell
# Of a program: rows, units, and the inner length of a piece of its products.
FORWARD: dict[str, Any] = {"BB": 32, "BU": 16, "BK": 64, "num_warps": 4, "num_stages": 3}
BACKWARD: dict[str, Any] = {"BB": 32, "BU": 16, "BK": 64, "num_warps": 4, "num_stages": 3}


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _forward(
    sums, weight_t, h, c, keep, c_out, out, h_next, batch,
    U: tl.constexpr, BB: tl.constexpr, BU: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BB + tl.arange(0, BB)
    units = tl.program_id(1) * BU + tl.arange(0, BU)
    here = rows[:, None] < batch
    gate = sums + rows[:, None] * 4 * U + units[None, :]
    i = tl.load(gate, mask=here, other=0.0)
    f = tl.load(gate + U, mask=here, other=0.0)
    g = tl.load(gate + 2 * U, mask=here, other=0.0)
    o = tl.load(gate + 3 * U, mask=here, other=0.0)
    for k in range(0, U, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(h + rows[:, None] * U + inner[None, :], mask=here, other=0.0)
        w = weight_t + inner[:, None] * 4 * U + units[None, :]
        i = tl.dot(x, tl.load(w), i, input_precision="tf32")
        f = tl.dot(x, tl.load(w + U), f, input_precision="tf32")
        g = tl.dot(x, tl.load(w + 2 * U), g, input_precision="tf32")
        o = tl.dot(x, tl.load(w + 3 * U), o, input_precision="tf32")
    tl.store(gate, i, mask=here)
    tl.store(gate + U, f, mask=here)
    tl.store(gate + 2 * U, g, mask=here)
    tl.store(gate + 3 * U, o, mask=here)
    at = rows[:, None] * U + units[None, :]
    cell = tl.sigmoid(f) * tl.load(c + at, mask=here, other=0.0) + tl.sigmoid(i) * _tanh(g)
    output = tl.sigmoid(o) * _tanh(cell)
    kept = tl.load(keep + rows, mask=rows < batch, other=0.0)[:, None]
    tl.store(c_out + at, cell, mask=here)
    tl.store(out + at, output, mask=here)
    tl.store(h_next + at, output * kept, mask=here)


@triton.jit
def _backward(
    after, weight, keep, grad_out, sums, c_before, c_after, grad_c, grads, batch,
    U: tl.constexpr, BB: tl.constexpr, BU: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BB + tl.arange(0, BB)
    units = tl.program_id(1) * BU + tl.arange(0, BU)
    here = rows[:, None] < batch
    at = rows[:, None] * U + units[None, :]
    product = tl.zeros((BB, BU), tl.float32)
    for k in range(0, 4 * U, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(after + rows[:, None] * 4 * U + inner[None, :], mask=here, other=0.0)
        w = tl.load(weight + inner[:, None] * U + units[None, :])
        product = tl.dot(x, w, product, input_precision="tf32")
    kept = tl.load(keep + rows, mask=rows < batch, other=0.0)[:, None]
    grad_h = tl.load(grad_out + at, mask=here, other=0.0) + product * kept
    gate = rows[:, None] * 4 * U + units[None, :]
    i = tl.sigmoid(tl.load(sums + gate, mask=here, other=0.0))
    f = tl.sigmoid(tl.load(sums + gate + U, mask=here, other=0.0))
    g = _tanh(tl.load(sums + gate + 2 * U, mask=here, other=0.0))
    o = tl.sigmoid(tl.load(sums + gate + 3 * U, mask=here, other=0.0))
    squashed = _tanh(tl.load(c_after + at, mask=here, other=0.0))
    by_c = tl.load(grad_c + at, mask=here, other=0.0) + grad_h * o * (1.0 - squashed * squashed)
    before = tl.load(c_before + at, mask=here, other=0.0)
    tl.store(grads + gate, by_c * g * i * (1.0 - i), mask=here)
    tl.store(grads + gate + U, by_c * before * f * (1.0 - f), mask=here)
    tl.store(grads + gate + 2 * U, by_c * i * (1.0 - g * g), mask=here)
    tl.store(grads + gate + 3 * U, grad_h * squashed * o * (1.0 - o), mask=here)
    tl.store(grad_c + at, by_c * f, mask=here)


def fits(units: int) -> bool:
    """Whether the kernels can hold a core of this size."""
    return not any(units % shape[key] for shape in (FORWARD, BACKWARD) for key in ("BU", "BK"))


def _grid(shape: dict[str, Any], batch: int, units: int) -> tuple[int, int]:
    return triton.cdiv(batch, shape["BB"]), units // shape["BU"]


def steps(gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
    """All steps, keeping nothing.  gates: [T, B, 4U], float32, the input half of the sums; overwritten."""
    _, cells, output, _ = _play(gates, weight, first, state)
    return output, torch.stack([output[-1], cells[-1]])


def _play(
    gates: Tensor, weight: Tensor, first: Tensor, state: State
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Fills `gates` with their sums; cells before every step and at the end, outputs, h as steps read it."""
    length, batch, units = *first.shape, state.shape[-1]
    keep = torch.cat([~first, ~first[-1:]]).float()  # [T + 1, B]; the last one is never read
    gates[..., units : 2 * units].masked_fill_(first.unsqueeze(-1), -torch.inf)
    cells, output = gates.new_empty(length + 1, batch, units), gates.new_empty(length, batch, units)
    hidden = weight.new_empty(length + 1, batch, units)
    cells[0] = state[1]
    hidden[0] = state[0] * keep[0].unsqueeze(-1)
    weight_t = weight.t().contiguous()
    grid = _grid(FORWARD, batch, units)
    for t in range(length):
        _forward[grid](
            gates[t], weight_t, hidden[t], cells[t], keep[t + 1], cells[t + 1], output[t], hidden[t + 1],
            batch, U=units, **FORWARD,
        )  # fmt: skip
    return gates, cells, output, hidden[:-1]


class Steps(torch.autograd.Function):
    """`steps` with a backward pass, which cannot be differentiated a second time."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        ctx.set_materialize_grads(False)
        ctx.gates_dtype = gates.dtype
        sums, cells, output, hidden = _play(gates.to(torch.float32, copy=True), weight, first, state)
        ctx.save_for_backward(weight, first, sums, cells, hidden)
        return output, torch.stack([output[-1], cells[-1]])

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_state: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        weight, first, sums, cells, hidden = ctx.saved_tensors
        length, batch, units = hidden.shape
        grad_output = torch.zeros_like(cells[1:]) if grad_output is None else grad_output.contiguous()
        grad_c = torch.zeros_like(cells[0])
        if grad_state is not None:  # the last state is handed out as it is
            grad_output = torch.cat([grad_output[:-1], (grad_output[-1] + grad_state[0]).unsqueeze(0)])
            grad_c += grad_state[1]
        keep = torch.cat([~first, ~first[-1:]]).float()
        grads = weight.new_zeros(length + 1, batch, 4 * units)  # of the gates; none come after the last step
        grid = _grid(BACKWARD, batch, units)
        for t in reversed(range(length)):
            _backward[grid](
                grads[t + 1], weight, keep[t + 1], grad_output[t], sums[t], cells[t], cells[t + 1], grad_c,
                grads[t], batch, U=units, **BACKWARD,
            )  # fmt: skip
        grad_gates, grad_weight, grad_initial = grads[:-1], None, None
        if ctx.needs_input_grad[1]:
            grad_weight = torch.mm(grad_gates.flatten(0, 1).t(), hidden.flatten(0, 1))
        if ctx.needs_input_grad[3]:
            grad_h = torch.mm(grads[0], weight).float() * keep[0].unsqueeze(-1)
            grad_initial = torch.stack([grad_h, grad_c])
        return grad_gates.to(ctx.gates_dtype), grad_weight, None, grad_initial
