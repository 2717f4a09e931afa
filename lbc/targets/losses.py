"""The losses: means over real transitions, every target behind a stop-gradient."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def masked_mean(x: Tensor, real: Tensor) -> Tensor:
    """Mean over real transitions; 0 if there is none.  x: [T, B];  real: [T, B] bool."""
    return torch.where(real, x, torch.zeros_like(x)).sum() / real.sum().clamp(min=1)


def squared_loss(target: Tensor, prediction: Tensor, real: Tensor) -> Tensor:
    """1/2 (sg(target) - prediction)^2: the V-loss and the Q-loss."""
    return 0.5 * masked_mean((target.detach() - prediction) ** 2, real)


def policy_loss(log_pi_t: Tensor, rho_t: Tensor, advantage_t: Tensor, real: Tensor) -> Tensor:
    """- sg(rho adv) log pi(a).  All [T, B]."""
    return -masked_mean((rho_t * advantage_t).detach() * log_pi_t, real)


def entropy_bonus(log_pi: Tensor, real: Tensor) -> Tensor:
    """Mean entropy of pi, in nats.  log_pi: [T, B, A]."""
    return masked_mean(-(log_pi.exp() * log_pi).sum(-1), real)


def inverse_dynamics_loss(logits: Tensor, action: Tensor, real: Tensor) -> Tensor:
    """Cross-entropy of a_t predicted from (z_t, z_{t+1}).  logits: [T, B, A];  action: [T, B]."""
    loss = functional.cross_entropy(logits.flatten(0, 1), action.flatten(), reduction="none")
    return masked_mean(loss.view_as(action), real)


def forward_dynamics_loss(predicted_z: Tensor, z_tp1: Tensor, real: Tensor) -> Tensor:
    """(z_{t+1} predicted from (z_t, a_t) - sg(z_{t+1}))^2 / max(1, sg(z_{t+1}^2)), each a mean over Z.

    predicted_z, z_tp1: [T, B, Z].  The features are their own target: undivided, once they are large, the
    error only makes them larger.
    """
    z_tp1 = z_tp1.detach()
    size = (z_tp1**2).mean(-1).clamp(min=1.0)
    return masked_mean(((predicted_z - z_tp1) ** 2).mean(-1) / size, real)
