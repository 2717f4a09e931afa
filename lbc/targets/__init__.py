"""Off-policy targets and the losses on them: pure functions of [T, B] tensors."""

from lbc.targets.losses import (
    entropy_bonus,
    forward_dynamics_loss,
    inverse_dynamics_loss,
    masked_mean,
    policy_loss,
    squared_loss,
)
from lbc.targets.retrace import retrace
from lbc.targets.vtrace import VTrace, importance_ratios, vtrace

__all__ = [
    "VTrace",
    "entropy_bonus",
    "forward_dynamics_loss",
    "importance_ratios",
    "inverse_dynamics_loss",
    "masked_mean",
    "policy_loss",
    "retrace",
    "squared_loss",
    "vtrace",
]
