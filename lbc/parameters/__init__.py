"""The parameter server and the weights on disk."""

from lbc.parameters.checkpoint import load_weights, save_weights
from lbc.parameters.server import ParameterServer

__all__ = ["ParameterServer", "load_weights", "save_weights"]
