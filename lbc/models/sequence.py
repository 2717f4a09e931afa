"""The recurrent core's steps in bfloat16 on a GPU that has clusters: a whole sequence as one kernel each way.

The kernels are in sequence.cu, which is compiled when it is first needed.  Products run in bfloat16; sums,
cells and outputs are float32.  Of the sums the backward pass keeps bfloat16, before their sigmoid, where a
forget gate of 0.999 is still told from 1.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lbc.models import nvrtc
from lbc.models.nvrtc import Launch

State = Tensor  # [2, B, units]: hidden and cell

UNITS = (64, 128, 256)  # a cluster has one block for 32 of them, and at most eight blocks
ROWS = 16  # of the batch, for a cluster
THREADS = 256


def plays(units: int, device: torch.device) -> bool:
    """Whether the kernels can play a core of this size there, in the types of the moment."""
    if device.type != "cuda" or units not in UNITS or not torch.is_autocast_enabled("cuda"):
        return False
    return torch.get_autocast_dtype("cuda") == torch.bfloat16 and kernels(units, device) is not None


@cache
def kernels(units: int, device: torch.device) -> tuple[Launch, Launch] | None:
    """Forward and backward, compiled; None where that is not possible."""
    names, options = ("forward", "backward"), [f"-DUNITS={units}"]
    found = nvrtc.kernels(Path(__file__).with_suffix(".cu"), names, device, (9, 0), options)
    return None if found is None else (found[0], found[1])


def by_unit(rows: Tensor) -> Tensor:
    """[4 U, ...], one gate after the other, as the kernels want it: one unit after the other."""
    return rows.unflatten(0, (4, -1)).transpose(0, 1).flatten(0, 1)


def by_gate(rows: Tensor) -> Tensor:
    """The inverse of `by_unit`."""
    return rows.unflatten(0, (-1, 4)).transpose(0, 1).flatten(0, 1)


class Steps(torch.autograd.Function):
    """All steps, with a backward pass that cannot be differentiated a second time."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        """gates: [T, B, 4 U] by unit, the input half of the sums;  weight: [4 U, U] by gate, both bfloat16;
        first: [T, B] bool;  state: [2, B, U] float32 -> [T, B, U], state."""
        ctx.set_materialize_grads(False)
        steps, batch, units = *first.shape, state.shape[-1]
        gates, weight, first, state = (x.contiguous() for x in (gates, weight, first, state))
        sums, hidden = torch.empty_like(gates), gates.new_empty(steps, batch, units)
        cells, output = state.new_empty(steps + 1, batch, units), state.new_empty(steps, batch, units)
        launch, _ = _kernels_for(units, gates.device)
        launch(
            _blocks(batch, units),
            THREADS,
            gates,
            weight,
            first,
            state,
            sums,
            cells,
            output,
            hidden,
            steps,
            batch,
        )
        ctx.save_for_backward(weight, first, sums, cells, hidden)
        return output, torch.stack([output[-1], cells[-1]])

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_state: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        weight, first, sums, cells, hidden = ctx.saved_tensors
        steps, batch, units = hidden.shape
        grad_output = torch.zeros_like(cells[1:]) if grad_output is None else grad_output.contiguous()
        grad = cells.new_zeros(2, batch, units)
        if grad_state is not None:
            grad.copy_(grad_state)
        grads = torch.empty_like(sums)
        _, launch = _kernels_for(units, sums.device)
        launch(
            _blocks(batch, units), THREADS, weight, first, grad_output, sums, cells, grad, grads, steps, batch
        )
        grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_weight = by_gate(torch.mm(grads.flatten(0, 1).t(), hidden.flatten(0, 1)))
        return grads, grad_weight, None, grad if ctx.needs_input_grad[3] else None


def _blocks(batch: int, units: int) -> int:
    return -(-batch // ROWS) * (units // 32)


def _kernels_for(units: int, device: torch.device) -> tuple[Launch, Launch]:
    found = kernels(units, device)
    assert found is not None, "plays() was not asked"
    return found
