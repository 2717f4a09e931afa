"""An LSTM with resets, step by step."""

from __future__ import annotations

import torch
from torch import Tensor

from lbc.models.core import RecurrentCore


def literal(core: RecurrentCore, x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """As it is defined, differentiated by autograd: h of every step, and the last h and c."""
    gates_x = core.input(x)
    keep = (~first).to(x.dtype).unsqueeze(-1)
    h, c = state[0], state[1]
    outputs = []
    for t in range(len(x)):
        h, c = h * keep[t], c * keep[t]
        i, f, g, o = torch.addmm(gates_x[t], h, core.hidden.weight.t()).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), torch.stack([h, c])
