"""PopArt: values of any size, learned at the size of one.

A discount of 0.999 makes values of hundreds; their squared losses then drown the policy's.  So the
heads predict normalised values, n(s), and V = mu + sigma n(s) with running statistics of the targets.
When the statistics move, the heads' last layers are corrected so that V itself does not move.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

MEMORY = 0.999  # of the running mean and second moment, per update
SMALLEST = 1e-2  # of sigma: rewards that never came must not be magnified


class ValueScale(nn.Module):
    """mu and sigma of one policy's value targets; (0, 1) until `track` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("square", torch.ones(()))
        self.register_buffer("sigma", torch.ones(()))
        self.register_buffer("updates", torch.zeros(()))
        self.mean: Tensor
        self.square: Tensor
        self.sigma: Tensor
        self.updates: Tensor

    @torch.no_grad()
    def track(self, target: Tensor, real: Tensor, values: list[nn.Module], advantage: nn.Module) -> None:
        """Follows the targets [T, B] and keeps what the heads say: `values` in mu and sigma, the
        advantage (a difference) in sigma alone."""
        old_mean, old_sigma = self.mean.clone(), self.sigma.clone()
        self.updates += 1
        rate = torch.clamp(1.0 / self.updates, min=1.0 - MEMORY)  # a plain average while it is young
        count = real.sum()
        rate = rate * (count > 0)  # a batch of padding alone says nothing
        x = torch.where(real, target, torch.zeros_like(target))
        self.mean += rate * (x.sum() / count.clamp(min=1) - self.mean)
        self.square += rate * ((x**2).sum() / count.clamp(min=1) - self.square)
        self.sigma.copy_((self.square - self.mean**2).clamp(min=SMALLEST**2).sqrt())
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
