"""Which transitions a policy may learn from: how far it may be from what was said when they were made."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p, q) over the last axis, in nats."""
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), torch.zeros_like(p)).sum(-1)


def trust_centre(kind: str, log_mu: Tensor, log_pi: Tensor, policy: int) -> Tensor:
    """log-probability of the action taken that a policy's own is compared with: [...].

    log_mu: [...] of the behavior;  log_pi: [..., N] of all target policies when the data was made.
    """
    if kind == "behavior":
        return log_mu
    if kind == "policy":
        return log_pi[..., policy]
    return log_pi.logsumexp(-1) - math.log(log_pi.shape[-1])  # their even mixture


def inside_trust_region(log_ratio: Tensor, advantage: Tensor, width: float) -> Tensor:
    """Where a step along the advantage does not take the ratio further from 1 than `width`: bool (PPO).

    Around mu the region pulls all policies towards the mixture, so that each learns well from the others'
    data, but also sharpens or flattens them as the taus happen to be.  Around the policy's own old opinion it
    does neither; around the population's it pulls them together, whatever the taus (docs/target-policy.md).
    """
    ratio = log_ratio.detach().exp()
    return torch.where(advantage > 0, ratio <= 1.0 + width, ratio >= 1.0 - width)
