"""g_omega: how several entropy-controlled policies become one behavior."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Distillation = Callable[[Tensor, Tensor], Tensor]


def mixture(log_pi: Tensor, omega: Tensor) -> Tensor:
    """log mu = log sum_m omega_m pi_m, exactly, in log space.

    log_pi: [M, ..., A];  omega: [..., M], non-negative with sum 1;  returns [..., A].
    A one-hot omega selects that component, so individual selection is this same line.
    """
    log_omega = torch.log(omega).movedim(-1, 0).unsqueeze(-1)  # -inf where a component is unused
    return torch.logsumexp(log_omega + log_pi, dim=0)


def responsibility(log_pi: Tensor, omega: Tensor, log_mu: Tensor) -> Tensor:
    """omega_m pi_m(a) / mu(a): which component an action came from.

    log_pi: [M, ...] of the action taken;  omega: [..., M];  log_mu: [...];  returns [M, ...].
    """
    return omega.movedim(-1, 0) * torch.exp(log_pi - log_mu)


# Selection is a mixture whose omega is one-hot: the space Psi sees to that.
DISTILLATIONS: dict[str, Distillation] = {"mixture": mixture, "selection": mixture}
