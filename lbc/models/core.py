"""The recurrent core: an LSTM whose state can be reset inside a sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

State = Tensor  # [2, B, units]: hidden and cell


class RecurrentCore(nn.Module):
    """LSTM over [T, B, inputs]; where `first` is set the state is zeroed *before* that step.

    The input half of the gates is one matrix product for the whole sequence; only the hidden half
    runs step by step, so that a reset is one multiplication instead of a split of the batch.
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
        gates_x = self.input(x)
        keep = (~first).to(x.dtype).unsqueeze(-1)
        h, c = state[0], state[1]
        outputs = []
        for t in range(len(x)):
            h, c = h * keep[t], c * keep[t]
            i, f, g, o = torch.addmm(gates_x[t], h, self.hidden.weight.t()).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs), torch.stack([h, c])


class NoCore(nn.Module):
    """No memory: features pass through, the state is empty."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.units = 0

    def initial_state(self, batch: int) -> State:
        return torch.zeros(2, batch, 0)

    def forward(self, x: Tensor, first: Tensor, state: State) -> tuple[Tensor, State]:
        return x, state
