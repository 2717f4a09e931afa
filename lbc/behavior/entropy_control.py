"""f_tau: how one number turns a policy's preferences Phi into a distribution of chosen entropy."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

EntropyControl = Callable[[Tensor, Tensor], Tensor]


def boltzmann(phi: Tensor, tau: Tensor) -> Tensor:
    """log softmax(tau Phi).  tau multiplies: 0 is uniform, large is argmax.

    phi: [..., A];  tau: [...];  returns log-probabilities [..., A].
    """
    return torch.log_softmax(tau.unsqueeze(-1) * phi, dim=-1)


def epsilon_greedy(phi: Tensor, epsilon: Tensor) -> Tensor:
    """log of (1 - epsilon) on the best actions (shared among ties) + epsilon / A on all.

    phi: [..., A];  epsilon: [...];  returns log-probabilities [..., A], -inf where impossible.
    """
    best = (phi == phi.amax(dim=-1, keepdim=True)).to(phi.dtype)
    greedy = best / best.sum(dim=-1, keepdim=True)
    epsilon = epsilon.unsqueeze(-1)
    return torch.log((1.0 - epsilon) * greedy + epsilon / phi.shape[-1])


ENTROPY_CONTROLS: dict[str, EntropyControl] = {"boltzmann": boltzmann, "epsilon_greedy": epsilon_greedy}
