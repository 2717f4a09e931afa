"""Learners: each updates one policy from everybody's data."""

from lbc.learner.diagnostics import diagnose, kl_between, kl_of_preferences
from lbc.learner.estimates import Estimates, Losses
from lbc.learner.learner import Learner
from lbc.learner.schedule import linear_with_warmup, warmup_then_constant
from lbc.learner.trust import divergence

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
