"""One experiment object, several ways to run it."""

from lbc.runtime.experiment import Experiment, assemble
from lbc.runtime.serial import SerialRun, train

__all__ = ["Experiment", "SerialRun", "assemble", "train"]
