"""H: the population of policies and what makes each its own: h_i = (gamma_i, RS_i), and more if wished."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lbc.config import PopulationConfig
from lbc.config.own_parts import imported, is_own
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


def shape_fourth_root(x: Tensor) -> Tensor:
    """GDI-H3's second: RS(x) = sign(x) ((|x| + 1)^(1/4) - 1) + 0.001 x.  Its first is RS_2."""
    return x.sign() * ((x.abs() + 1.0) ** 0.25 - 1.0) + 0.001 * x


def shape_tanh(x: Tensor) -> Tensor:
    """RS_3(x) = 0.3 min(tanh x, 0) + 5 max(tanh x, 0): losses hardly count."""
    squashed = torch.tanh(x)
    return 0.3 * squashed.clamp(max=0.0) + 5.0 * squashed.clamp(min=0.0)


SHAPINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "sqrt": shape_sqrt,
    "log": shape_log,
    "tanh": shape_tanh,
    "fourth_root": shape_fourth_root,
    "clip": shape_clip,
    "identity": shape_identity,
}


@dataclass(frozen=True)
class PolicyHyperParameters:
    """h_i: what makes policy i differ from its siblings."""

    index: int
    discount: float
    shaping: str
    entropy_scaling: float | None = None  # the entropy bonus; None: the learner's
    first_discount: float | None = None  # at the beginning of the run; None: `discount` throughout
    ramp: float = 0.5  # share of the run after which `discount` is reached

    def discount_at(self, progress: float) -> float:
        """`progress` of the run's budget spent; the horizon 1 / (1 - discount) is multiplied evenly."""
        if self.first_discount is None:
            return self.discount
        done = min(1.0, progress / self.ramp)
        if done == 1.0:
            return self.discount
        return 1.0 - (1.0 - self.first_discount) ** (1.0 - done) * (1.0 - self.discount) ** done

    def shape(self, reward: Tensor) -> Tensor:
        return shaping_of(self.shaping)(reward)


@functools.cache
def shaping_of(name: str) -> Callable[[Tensor], Tensor]:
    """One of ours, or a user's own function by ``module:function``."""
    if is_own(name):
        return _own_shaping(name)
    if name not in SHAPINGS:
        known = ", ".join(SHAPINGS)
        raise UserError(
            f"population.shapings names '{name}', but must be one of {known}.{nearest(name, SHAPINGS)}"
        )
    return SHAPINGS[name]


def _own_shaping(name: str) -> Callable[[Tensor], Tensor]:
    """It takes rewards of any shape at once, and shapes each by itself."""
    what = f"shaping {name}"
    shape = imported(name, what)
    rewards = torch.tensor([[-1000.0, -1.0, -0.01], [0.0, 1.0, 1000.0]], dtype=torch.float64)
    try:
        shaped = shape(rewards.clone())
        alone = torch.stack([shape(x.clone()) for x in rewards.flatten()]).view_as(rewards)
        fits = bool(torch.isfinite(shaped).all()) and torch.allclose(shaped, alone)
        fits = fits and shape(rewards.float()).dtype == torch.float32
    except Exception as error:
        told = (str(error).splitlines() or [""])[0]
        raise UserError(f"{what} failed ({type(error).__name__}: {told}); it takes a tensor.") from error
    if not fits:
        raise UserError(
            f"{what} must return a finite tensor of the rewards' shape and type, each entry from its own."
        )
    return shape


def build_population(config: PopulationConfig) -> tuple[PolicyHyperParameters, ...]:
    for name in config.shapings:
        shaping_of(name)
    none = (None,) * len(config.discounts)
    bonuses, first = config.entropy_scalings or none, config.first_discounts or none
    entries = list(zip(config.discounts, config.shapings, bonuses, first, strict=True))[: config.size]
    return tuple(
        PolicyHyperParameters(index, *entry, config.discount_ramp) for index, entry in enumerate(entries)
    )
