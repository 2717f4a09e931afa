"""The parameter server: learners push weights, actors pull them, versions say how old they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Published:
    version: int  # the learner's update count when it pushed
    weights: Weights


class ParameterServer:
    """::

    server.push(i, network_i, version=updates)      # learner i, every d_push updates
    server.pull(i, network, have=version)           # actor, every d_pull steps; returns the new version
    """

    def __init__(self) -> None:
        self._published: dict[int, Published] = {}

    def push(self, policy: int, network: nn.Module, version: int) -> None:
        weights = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
        self._published[policy] = Published(version, weights)

    def pull(self, policy: int, network: nn.Module, have: int = -1) -> int:
        """Loads the newest weights into `network` unless it has them already."""
        published = self._published[policy]
        if published.version != have:
            own = network.state_dict()
            torch._foreach_copy_(list(own.values()), [published.weights[name] for name in own])
        return published.version

    def snapshot(self) -> dict[int, dict[str, Any]]:
        return {i: {"version": p.version, "weights": p.weights} for i, p in self._published.items()}

    def resume(self, state: dict[int, dict[str, Any]]) -> None:
        self._published = {i: Published(**published) for i, published in state.items()}

    def version(self, policy: int) -> int:
        return self._published[policy].version

    def weights(self, policy: int) -> Weights:
        return self._published[policy].weights
