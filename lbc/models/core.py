"""The recurrent core: an LSTM whose state can be reset inside a sequence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lbc.models import fused, sequence

State = Tensor  # [2, B, units]: hidden and cell


class RecurrentCore(nn.Module):
    """LSTM over [T, B, inputs]; where `first` is set the state is zeroed *before* that step.

    The input half of the gates is one matrix product for the whole sequence; only the hidden half
    runs step by step, so that a reset is one multiplication instead of a split of the batch.  The steps
    have a backward pass of their own (`_Steps`), which cannot be differentiated a second time; in bfloat16
    on a GPU that has clusters all steps are one kernel each way (`sequence`).

    Under autocast the matrix products run in its type (where a GPU goes step by step, the recurrent one
    stays in that of the parameters, or in TF32 where that is allowed).  Gates, state and output keep the type
    of the parameters: in bfloat16 a forget gate of 0.999 would be 1, and the cell would never fade.
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.input = nn.Linear(inputs, 4 * units)
        self.hidden = nn.Linear(units, 4 * units, bias=False)
        for gate in range(4):  # input, forget, cell, output
            rows = slice(gate * units, (gate + 1) * units)
            nn.init.orthogonal_(self.input.weight.data[rows])
            nn.init.orthogonal_(self.hidden.weight.data[rows])
        nn.init.zeros_(self.input.bias)

    def initial_state(self, batch: int) -> State:
        weight = self.hidden.weight
        return torch.zeros(2, batch, self.units, dtype=weight.dtype, device=weight.device)

    def forward(self, x: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        """x: [T, B, inputs];  first: [T, B] bool;  state: [2, B, units] -> [T, B, units], state."""
        weight = self.hidden.weight
        state = state.to(weight.dtype)
        if len(first) > 1 and sequence.plays(self.units, x.device):
            rows, bias = sequence.by_unit(self.input.weight), sequence.by_unit(self.input.bias)
            gates = functional.linear(x, rows, bias)
            return sequence.Steps.apply(gates, weight.to(gates.dtype), first, state)
        gates = self.input(x)
        learning = gates.requires_grad or weight.requires_grad or state.requires_grad
        learning = learning and torch.is_grad_enabled()
        if gates.is_cuda:
            if learning:
                return fused.Steps.apply(gates, weight, first, state)
            return fused.steps(gates.to(state.dtype), weight, first, state)
        weight = weight.to(gates.dtype)  # another type under autocast only
        if learning:
            return _Steps.apply(gates, weight, first, state)
        return _steps(gates.to(state.dtype), weight, first, state)


def _steps(gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
    """All steps, keeping nothing for a backward pass.  gates: [T, B, 4U], the input half; overwritten."""
    output = gates.new_empty(*first.shape, state.shape[-1])
    keep, weight_t = (~first).to(state.dtype).unsqueeze(-1), weight.t()
    for gates_t, keep_t, h_out in zip(gates.unbind(), keep.unbind(), output.unbind(), strict=True):
        state = state * keep_t
        h, c = state.unbind()
        if weight.dtype == gates.dtype:
            gates_t.addmm_(h, weight_t)
        else:
            gates_t.add_(torch.mm(h.to(weight.dtype), weight_t))
        i, f, g, o = gates_t.chunk(4, dim=-1)
        candidate = torch.tanh(g)
        gates_t.sigmoid_()  # all four in one call; g has been read
        c.mul_(f).addcmul_(i, candidate)
        torch.mul(o, torch.tanh(c), out=h)
        h_out.copy_(h)
    return output, state


class _Steps(torch.autograd.Function):
    """`_steps` with a backward pass.

    Both directions fill tensors over all T steps that were allocated beforehand.  A step is one matrix
    product and a few elementwise operations; nothing waits for the device, so a CUDA graph can hold it.
    The gradient of the weights is a single product at the end.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        steps, batch, units = *first.shape, state.shape[-1]
        ctx.set_materialize_grads(False)
        ctx.gates_dtype = gates.dtype
        gates = gates.to(state.dtype, copy=True)
        reset, weight_t = first.unsqueeze(-1), weight.t()
        gates[..., units : 2 * units].masked_fill_(reset, -torch.inf)  # a closed forget gate resets the cell
        keep = (~reset).to(state.dtype)
        hidden = weight.new_empty(steps, batch, units)  # h as a step reads it, reset
        cells = gates.new_empty(steps + 1, batch, units)  # c before every step, not reset, and at the end
        candidates = gates.new_empty(steps, batch, units)  # tanh(g)
        squashed = gates.new_empty(steps, batch, units)  # tanh(c)
        output = gates.new_empty(steps, batch, units)
        product = None if weight.dtype == gates.dtype else weight.new_empty(batch, 4 * units)

        h, c = state[0], cells[0].copy_(state[1])
        per_step = (keep, hidden, gates, *gates.chunk(4, dim=-1), candidates, cells[1:], squashed, output)
        for keep_t, h_in, gates_t, i, f, g, o, candidate, c_out, tanh_c, h_out in zip(
            *(tensor.unbind() for tensor in per_step), strict=True
        ):
            torch.mul(h, keep_t, out=h_in)
            if product is None:
                gates_t.addmm_(h_in, weight_t)
            else:
                gates_t.add_(torch.mm(h_in, weight_t, out=product))
            torch.tanh(g, out=candidate)
            gates_t.sigmoid_()  # all four in one call; g has been read
            torch.mul(f, c, out=c_out).addcmul_(i, candidate)
            torch.tanh(c_out, out=tanh_c)
            torch.mul(o, tanh_c, out=h_out)
            h, c = h_out, c_out
        ctx.save_for_backward(weight, keep, hidden, gates, cells, candidates, squashed)
        return output, torch.stack([h, c])

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_state: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """The gradient of a gate is that of the cell (i, f, g) or of the output (o), times a slope.

        All slopes are computed beforehand.  A forget gate that a reset has closed has slope 0 and lets no
        gradient through, so that the cell needs no mask.
        """
        weight, keep, hidden, gates, cells, candidates, squashed = ctx.saved_tensors
        steps, batch, units = hidden.shape
        _, learns_weight, _, learns_state = ctx.needs_input_grad
        i, f, _, o = gates.chunk(4, dim=-1)
        sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
        slopes_ifg = gates.new_empty(3, steps, batch, units)
        sigmoid_backward(candidates, i, grad_input=slopes_ifg[0])
        sigmoid_backward(cells[:-1], f, grad_input=slopes_ifg[1])
        tanh_backward(i, candidates, grad_input=slopes_ifg[2])
        slopes_o = sigmoid_backward(squashed, o)
        slopes_c = tanh_backward(o, squashed)  # of the output, by the cell

        grad_output = torch.zeros_like(squashed) if grad_output is None else grad_output
        grad_state = gates.new_zeros(2, batch, units) if grad_state is None else grad_state
        grad_h, grad_c = grad_output[-1] + grad_state[0], grad_state[1].clone()
        grad_gates = torch.empty_like(gates, dtype=ctx.gates_dtype)
        product = weight.new_empty(batch, units)
        by_gate = grad_gates.unflatten(-1, (4, units))
        per_step = (
            slopes_c, slopes_ifg.transpose(0, 1), slopes_o, f, keep,
            by_gate[:, :, :3].transpose(1, 2), by_gate[:, :, 3], grad_gates,
        )  # fmt: skip
        before = (None, *grad_output[:-1].unbind())  # gradients of the outputs, one step earlier
        for grad_before, slope_c, slope_ifg, slope_o, f_t, keep_t, grad_ifg, grad_o, grad_gates_t in zip(
            *(reversed(rows) for rows in (before, *(tensor.unbind() for tensor in per_step))), strict=True
        ):
            grad_c.addcmul_(grad_h, slope_c)
            torch.mul(grad_c, slope_ifg, out=grad_ifg)
            torch.mul(grad_h, slope_o, out=grad_o)
            grad_c.mul_(f_t)
            if grad_before is not None:
                torch.mm(grad_gates_t, weight, out=product)
                torch.addcmul(grad_before, product, keep_t, out=grad_h)
        grad_weight = grad_initial = None
        if learns_weight:
            flat = grad_gates.flatten(0, 1)
            grad_weight = torch.mm(flat.t(), hidden.flatten(0, 1), out=torch.empty_like(weight))
        if learns_state:
            torch.mm(grad_gates[0], weight, out=product)
            grad_initial = torch.stack([product * keep[0], grad_c])
        return grad_gates, grad_weight, None, grad_initial


class NoCore(nn.Module):
    """No memory: features pass through, the state is empty."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.units = 0

    def initial_state(self, batch: int) -> State:
        return torch.zeros(2, batch, 0)

    def forward(self, x: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        return x, state
