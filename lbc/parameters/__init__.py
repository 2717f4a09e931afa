"""The parameter server and the weights on disk."""

from lbc.parameters.checkpoint import load_weights, save_weights
from lbc.parameters.server import ParameterServer
from lbc.parameters.snapshot import give, take
from lbc.parameters.store import Checkpoint, newest, write

__all__ = ["Checkpoint", "ParameterServer", "give", "load_weights", "newest", "save_weights", "take", "write"]
