"""H: the population of policies and their hyper-parameters h_i = (gamma_i, RS_i)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lbc.config import PopulationConfig
from lbc.errors import UserError, nearest


def shape_identity(x: Tensor) -> Tensor:
    """RS(x) = x."""
    return x


def shape_clip(x: Tensor) -> Tensor:
    """RS(x) = clip(x, -1, 1), DQN's."""
    return x.clamp(-1.0, 1.0)


def shape_sqrt(x: Tensor) -> Tensor:
    """RS_1(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x."""
    return x.sign() * ((x.abs() + 1.0).sqrt() - 1.0) + 0.001 * x


def shape_log(x: Tensor) -> Tensor:
    """RS_2(x) = log(|x| + 1) (2 if x >= 0 else -1): gains count double."""
    return torch.log(x.abs() + 1.0) * torch.where(x >= 0, 2.0, -1.0)


def shape_tanh(x: Tensor) -> Tensor:
    """RS_3(x) = 0.3 min(tanh x, 0) + 5 max(tanh x, 0): losses hardly count."""
    squashed = torch.tanh(x)
    return 0.3 * squashed.clamp(max=0.0) + 5.0 * squashed.clamp(min=0.0)


SHAPINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "sqrt": shape_sqrt,
    "log": shape_log,
    "tanh": shape_tanh,
    "clip": shape_clip,
    "identity": shape_identity,
}


@dataclass(frozen=True)
class PolicyHyperParameters:
    """h_i: what makes policy i differ from its siblings."""

    index: int
    discount: float
    shaping: str

    def shape(self, reward: Tensor) -> Tensor:
        return SHAPINGS[self.shaping](reward)


def build_population(config: PopulationConfig) -> tuple[PolicyHyperParameters, ...]:
    for name in config.shapings:
        if name not in SHAPINGS:
            known = ", ".join(SHAPINGS)
            raise UserError(
                f"population.shapings names '{name}', but must be one of {known}.{nearest(name, SHAPINGS)}"
            )
    return tuple(
        PolicyHyperParameters(index, discount, shaping)
        for index, (discount, shaping) in enumerate(zip(config.discounts, config.shapings, strict=True))
    )
