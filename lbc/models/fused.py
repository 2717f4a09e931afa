"""The recurrent core's steps on a GPU: a matrix product and an elementwise kernel each, in both directions.

That is as many launches as an LSTM without resets needs.  A step's elementwise work is compiled when it
is first used; on other devices the same formulas run as plain operations, which is how they are tested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

State = Tensor  # [2, B, units]: hidden and cell

_CELL = """
template <typename T>
void cell(T i, T f, T g, T o, T c, T keep, T& c_out, T& h_out, T& h_next) {
    T one = T(1);
    c_out = c / (one + exp(-f)) + tanh(g) / (one + exp(-i));
    h_out = tanh(c_out) / (one + exp(-o));
    h_next = h_out * keep;
}
"""
_BACK = """
template <typename T>
T back(T before, T product, T keep, T grad_c, T a, T b) {
    return (before + product * keep) * a + grad_c * b;
}
"""


def cell(i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor, keep: Tensor) -> tuple[Tensor, ...]:
    """One step from the gates' sums: the cell, the output, and the output as the next step reads it."""
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return c, h, h * keep


def back(before: Tensor, product: Tensor, keep: Tensor, grad_c: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """What the gradients of output and cell mean for the four gates and, as a fifth, the cell before."""
    return (before + product * keep) * a + grad_c * b


@cache
def kernels(on_cuda: bool) -> tuple[Callable[..., tuple[Tensor, ...]], Callable[..., Tensor]]:
    if not on_cuda:
        return cell, back
    jit = torch.cuda.jiterator
    return jit._create_multi_output_jit_fn(_CELL, num_outputs=3), jit._create_jit_fn(_BACK)


def steps(gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
    """All steps, keeping nothing.  gates: [T, B, 4U], the input half of the sums; overwritten."""
    _, cells, output, _ = _play(gates, weight, first, state)
    return torch.stack(output), torch.stack([output[-1], cells[-1]])


def _play(
    gates: Tensor, weight: Tensor, first: Tensor, state: State
) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor]]:
    """Fills `gates` with their sums; cells before every step and at the end, outputs, h as steps read it."""
    step, _ = kernels(gates.is_cuda)
    units = state.shape[-1]
    keep = (~first).to(state.dtype).unsqueeze(-1)  # [T, B, 1]
    gates[..., units : 2 * units].masked_fill_(first.unsqueeze(-1), -torch.inf)  # resets the cell
    h, c, weight_t = state[0] * keep[0], state[1], weight.t()
    cells, output, hidden = [c], [], [h]
    for gates_t, keep_next in zip(gates.unbind(), (*keep[1:].unbind(), keep[-1]), strict=True):
        gates_t.addmm_(hidden[-1], weight_t)
        c, out, h = step(*gates_t.chunk(4, dim=-1), c, keep_next)
        cells.append(c)
        output.append(out)
        hidden.append(h)
    return gates, cells, output, hidden[:-1]


class Steps(torch.autograd.Function):
    """`steps` with a backward pass, which cannot be differentiated a second time."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        ctx.set_materialize_grads(False)
        ctx.gates_dtype = gates.dtype
        sums, cells, output, hidden = _play(gates.to(state.dtype, copy=True), weight, first, state)
        ctx.save_for_backward(weight, first, sums, torch.stack(cells), torch.stack(hidden))
        return torch.stack(output), torch.stack([output[-1], cells[-1]])

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_state: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """A gate's gradient is (gradient of h) a + (gradient of c) b, with a and b known beforehand."""
        weight, first, sums, cells, hidden = ctx.saved_tensors
        length, batch, units = hidden.shape
        a, b = _slopes(sums, cells)
        _, step = kernels(sums.is_cuda)
        grad_output = torch.zeros_like(hidden) if grad_output is None else grad_output
        last = cells.new_zeros(2, batch, units) if grad_state is None else grad_state
        keep = (~first).to(cells.dtype)[..., None, None]  # [T, B, 1, 1]
        kept = torch.ones_like(keep[0])  # the last state is handed out as it is
        product, grad_c = last[0], last[1].unsqueeze(1)
        found = []
        for t in reversed(range(length)):
            grads = step(grad_output[t].unsqueeze(1), product.unsqueeze(1), kept, grad_c, a[t], b[t])
            product = torch.mm(grads.flatten(1)[:, : 4 * units], weight)
            kept, grad_c = keep[t], grads[:, 4:]
            found.append(grads)
        grad_gates = torch.stack(found[::-1])[:, :, :4].flatten(2)
        grad_weight = grad_initial = None
        if ctx.needs_input_grad[1]:
            grad_weight = torch.mm(grad_gates.flatten(0, 1).t(), hidden.flatten(0, 1))
        if ctx.needs_input_grad[3]:
            grad_initial = torch.stack([product * keep[0].squeeze(-1), grad_c.squeeze(1)])
        return grad_gates.to(ctx.gates_dtype), grad_weight, None, grad_initial


def _slopes(sums: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """For all steps, of the gates i, f, g, o and of the cell before: both [T, B, 5, U].

    A forget gate that a reset has closed has slope 0 and lets no gradient through to the cell.
    """
    i, f, g, o = sums.chunk(4, dim=-1)
    i, f, o, g, tanh_c = i.sigmoid(), f.sigmoid(), o.sigmoid(), g.tanh(), cells[1:].tanh()
    by_c = torch.stack([g * i * (1 - i), cells[:-1] * f * (1 - f), i * (1 - g * g)], dim=2)
    through = o * (1 - tanh_c * tanh_c)  # of h, by the cell
    by_h = tanh_c * o * (1 - o)
    a = torch.cat([by_c * through.unsqueeze(2), torch.stack([by_h, through * f], dim=2)], dim=2)
    b = torch.cat([by_c, torch.stack([torch.zeros_like(f), f], dim=2)], dim=2)
    return a, b
