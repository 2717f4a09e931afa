"""What a learner makes of a batch: the records that travel between the steps of an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from lbc.models.network import Outputs
from lbc.targets import masked_mean
from lbc.types import Batch


@dataclass(frozen=True)
class Losses:
    """The parts of the loss, each already scaled; their sum is minimised."""

    value: Tensor
    q: Tensor
    policy: Tensor
    auxiliary: Tensor
    entropy: Tensor

    def parts(self) -> dict[str, Tensor]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def total(self) -> Tensor:
        return torch.stack(list(self.parts().values())).sum()

    def times(self, factor: Tensor) -> Losses:
        return Losses(**{name: factor * loss for name, loss in self.parts().items()})

    @staticmethod
    def added(some: Sequence[Losses]) -> Losses:
        """Their sum, without gradient."""
        parts = zip(*(losses.parts().values() for losses in some), strict=True)
        return Losses(*(torch.stack(part).detach().sum() for part in parts))


@dataclass(frozen=True)
class Estimates:
    """What one forward pass says about the T trained steps: all [T, B] unless stated."""

    outputs: Outputs  # of T + 1 rows
    log_pi: Tensor  # [T + 1, B, A] target policy
    log_pi_t: Tensor  # of the action taken
    log_mu_t: Tensor
    rho_t: Tensor  # clipped ratio
    q_t: Tensor  # Q(s_t, a_t)
    v_target: Tensor
    q_target: Tensor
    advantage: Tensor  # scaled
    real: Tensor  # bool
    kept: Tensor  # bool: real, and inside the trust region


class Moments(NamedTuple):
    """Of the advantages of a whole batch, for `learner.normalise_advantage`."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, advantage: Tensor, real: Tensor) -> Moments:
        mean = masked_mean(advantage, real)
        return cls(mean, masked_mean((advantage - mean) ** 2, real).sqrt() + 1e-8)


class Seen(NamedTuple):
    """What the running statistics follow, of a whole batch and without gradient."""

    advantage: Tensor  # [T + 1, B, A]
    v_target: Tensor  # [T, B]
    real: Tensor  # [T, B] bool
    x: Tensor  # [T + 1, B, units]


def counted(batch: Batch) -> Tensor:
    """How many real transitions it trains on, at least 1."""
    return (~batch.first[batch.burn_in + 1 :]).sum().clamp(min=1).to(batch.reward.dtype)
