"""Dueling heads and their algebra."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lbc.models.initialisation import HIDDEN_GAIN, Initialise


def head(
    inputs: int, hidden: int, outputs: int, gain: float, init: Initialise, slope: float = 0.0
) -> nn.Module:
    """One hidden layer (none if `hidden` is 0) and a linear output with its own gain.

    slope: of the hidden units below zero.  A ReLU (slope 0) that is below zero in all states learns no more,
    and at the full size of Atari most of them came to that.
    """
    if hidden == 0:
        return init(nn.Linear(inputs, outputs), gain)
    return nn.Sequential(
        init(nn.Linear(inputs, hidden), HIDDEN_GAIN),
        nn.LeakyReLU(slope) if slope else nn.ReLU(),
        init(nn.Linear(hidden, outputs), gain),
    )


def dueling_q(advantage: Tensor, log_pi: Tensor, value: Tensor) -> Tensor:
    """Q = A - sum_b sg(pi_b) A_b + value, so that E_pi Q = value exactly.

    advantage, log_pi: [..., A];  value: [...], already behind a stop-gradient where the head is tied.
    """
    expected = (log_pi.detach().exp() * advantage).sum(-1, keepdim=True)
    return advantage - expected + value.unsqueeze(-1)


def taken(x: Tensor, action: Tensor) -> Tensor:
    """The entry of the action taken: [..., A], [...] -> [...]."""
    return torch.gather(x, -1, action.unsqueeze(-1)).squeeze(-1)
