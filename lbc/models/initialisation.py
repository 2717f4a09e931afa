"""Initial weights.  They decide whether the value function learns at all (see docs/target-policy.md).

Orthogonal, gain sqrt(2) in the torso and in the heads' hidden layers, 0.01 in the last layer of
policy and advantage (the first behavior is uniform), 1 in the last layer of a value and where no ReLU
follows; biases 0.  A residual block begins near the identity, or features grow with every block, and with
them the step that one update takes.
"""

from __future__ import annotations

import math
from typing import Protocol, TypeVar

from torch import nn

HIDDEN_GAIN = math.sqrt(2.0)
POLICY_GAIN = 0.01
VALUE_GAIN = 1.0
LINEAR_GAIN = 1.0  # of a layer without a ReLU behind it
BRANCH_GAIN = 0.1  # of the last layer of a residual block's branch

Layer = TypeVar("Layer", bound=nn.Module)


class Initialise(Protocol):
    """Sets a layer's weights with a gain, and hands the layer back."""

    def __call__(self, layer: Layer, gain: float) -> Layer: ...


def orthogonal(layer: Layer, gain: float) -> Layer:
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def keep(layer: Layer, gain: float) -> Layer:
    """PyTorch's own initialisation, for comparison."""
    return layer


INITIALISATIONS: dict[str, Initialise] = {"orthogonal": orthogonal, "torch": keep}
