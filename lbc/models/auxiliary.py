"""Auxiliary tasks on the torso's features: they give gradients where rewards are rare."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lbc.models.heads import head
from lbc.models.initialisation import VALUE_GAIN, Initialise


class InverseDynamics(nn.Module):
    """a_t from (z_t, z_{t+1}): what did I do?"""

    def __init__(self, units: int, num_actions: int, init: Initialise) -> None:
        super().__init__()
        self.net = head(2 * units, units, num_actions, VALUE_GAIN, init)

    def forward(self, z: Tensor) -> Tensor:
        """z: [T + 1, B, Z] -> logits [T, B, A]."""
        return self.net(torch.cat([z[:-1], z[1:]], dim=-1))


class ForwardDynamics(nn.Module):
    """z_{t+1} from (z_t, a_t): what will that do?"""

    def __init__(self, units: int, num_actions: int, init: Initialise) -> None:
        super().__init__()
        self.num_actions = num_actions
        self.net = head(units + num_actions, units, units, VALUE_GAIN, init)

    def forward(self, z: Tensor, action: Tensor) -> Tensor:
        """z: [T + 1, B, Z];  action: [T, B] -> predicted z_{t+1}: [T, B, Z]."""
        one_hot = nn.functional.one_hot(action, self.num_actions).to(z.dtype)
        return self.net(torch.cat([z[:-1], one_hot], dim=-1))
