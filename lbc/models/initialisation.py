"""Initial weights.  They decide whether the value function learns at all (see docs/target-policy.md).

Orthogonal, gain sqrt(2) in the torso and in the heads' hidden layers, 0.01 in the last layer of
policy and advantage (the first behavior is uniform), 1 in the last layer of a value; biases 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import nn

HIDDEN_GAIN = math.sqrt(2.0)
POLICY_GAIN = 0.01
VALUE_GAIN = 1.0

Initialise = Callable[[nn.Module, float], nn.Module]


def orthogonal(layer: nn.Module, gain: float) -> nn.Module:
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def keep(layer: nn.Module, gain: float) -> nn.Module:
    """PyTorch's own initialisation, for comparison."""
    return layer


INITIALISATIONS: dict[str, Initialise] = {"orthogonal": orthogonal, "torch": keep}
