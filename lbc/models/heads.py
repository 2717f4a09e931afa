"""Dueling heads and their algebra."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lbc.models.initialisation import HIDDEN_GAIN, Initialise


def head(
    inputs: int, hidden: int, outputs: int, gain: float, init: Initialise, normalised: bool = False
) -> nn.Module:
    """One hidden layer (none if `hidden` is 0) and a linear output with its own gain.

    normalised: a LayerNorm before the ReLU.  The core's outputs are nearly the same in all states, so that
    steps push a unit up or down for all of them at once; one that is below zero everywhere learns no more.
    """
    if hidden == 0:
        return init(nn.Linear(inputs, outputs), gain)
    layers: list[nn.Module] = [init(nn.Linear(inputs, hidden), HIDDEN_GAIN)]
    layers += [nn.LayerNorm(hidden)] if normalised else []
    return nn.Sequential(*layers, nn.ReLU(), init(nn.Linear(hidden, outputs), gain))


def dueling_q(advantage: Tensor, log_pi: Tensor, value: Tensor) -> Tensor:
    """Q = A - sum_b sg(pi_b) A_b + value, so that E_pi Q = value exactly.

    advantage, log_pi: [..., A];  value: [...], already behind a stop-gradient where the head is tied.
    """
    expected = (log_pi.detach().exp() * advantage).sum(-1, keepdim=True)
    return advantage - expected + value.unsqueeze(-1)


def taken(x: Tensor, action: Tensor) -> Tensor:
    """The entry of the action taken: [..., A], [...] -> [...]."""
    return torch.gather(x, -1, action.unsqueeze(-1)).squeeze(-1)
