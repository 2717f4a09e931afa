"""PopArt: values of any size, learned at the size of one.

A discount of 0.999 makes values of hundreds; their squared losses then drown the policy's.  So the
heads predict normalised values, n(s), and V = mu + sigma n(s) with running statistics of the targets.
When the statistics move, the heads' last layers are corrected so that V itself does not move.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lbc.targets.losses import masked_mean

MEMORY = 0.999  # of the running mean and variance, per update
PRIOR = 20  # updates that the starting point (0, 1) counts for: the first batches may hold no reward at all
SMALLEST = 1e-2  # of sigma: rewards that never came must not be magnified


class ValueScale(nn.Module):
    """mu and sigma of one policy's value targets; (0, 1) until `track` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.ones(()))
        self.register_buffer("sigma", torch.ones(()))
        self.register_buffer("updates", torch.zeros(()))
        self.mean: Tensor
        self.variance: Tensor
        self.sigma: Tensor
        self.updates: Tensor

    @torch.no_grad()
    def track(self, target: Tensor, real: Tensor, values: list[nn.Module], advantage: nn.Module) -> None:
        """Follows the targets [T, B] and keeps what the heads say: `values` in mu and sigma, the
        advantage (a difference) in sigma alone."""
        old_mean, old_sigma = self.mean.clone(), self.sigma.clone()
        self.updates += 1
        rate = torch.clamp(1.0 / (self.updates + PRIOR), min=1.0 - MEMORY)  # a plain average while young
        rate = rate * real.any()  # a batch of padding alone says nothing
        centre = masked_mean(target, real)
        spread = masked_mean((target - centre) ** 2, real)  # inside a batch: drift is not spread
        self.mean += rate * (centre - self.mean)
        self.variance += rate * (spread - self.variance)
        self.sigma.copy_(self.variance.clamp(min=SMALLEST**2).sqrt())
        ratio = old_sigma / self.sigma
        for head in values:
            layer = _last(head)
            layer.weight.mul_(ratio)
            layer.bias.mul_(ratio).add_((old_mean - self.mean) / self.sigma)
        layer = _last(advantage)
        layer.weight.mul_(ratio)
        layer.bias.mul_(ratio)


def _last(head: nn.Module) -> nn.Linear:
    layer = head[-1] if isinstance(head, nn.Sequential) else head
    assert isinstance(layer, nn.Linear)
    return layer
