"""Learners: each updates one policy from everybody's data."""

from lbc.learner.diagnostics import diagnose, kl_between, kl_of_preferences
from lbc.learner.learner import Estimates, Learner, Losses, divergence
from lbc.learner.schedule import linear_with_warmup, warmup_then_constant

__all__ = [
    "Estimates",
    "Learner",
    "Losses",
    "diagnose",
    "divergence",
    "kl_between",
    "kl_of_preferences",
    "linear_with_warmup",
    "warmup_then_constant",
]
