"""Observation -> preferences and values."""

from lbc.models.core import RecurrentCore, State
from lbc.models.heads import dueling_q, taken
from lbc.models.network import Outputs, PolicyNetwork
from lbc.models.torso import Torso

__all__ = ["Outputs", "PolicyNetwork", "RecurrentCore", "State", "Torso", "dueling_q", "taken"]
