"""Parts of a user's own that make trouble in a learner's process."""

from __future__ import annotations

import math
import multiprocessing

import torch
from torch import Tensor, nn

TRIED = (2, 3)  # the shape of the rewards that every shaping is tried on


def greedy(reward: Tensor) -> Tensor:
    """A shaping that wants all the memory of the world."""
    name = multiprocessing.current_process().name
    if name.startswith("lbc-learner") and reward.dim() == 2 and reward.shape != TRIED:
        torch.empty(10**15)
    return reward


class Replacing(nn.Module):
    """A torso that puts a new tensor in a buffer's place."""

    def __init__(self, shape, model) -> None:
        super().__init__()
        self.layer = nn.Linear(math.prod(shape), 5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return self.layer(x.flatten(1))
