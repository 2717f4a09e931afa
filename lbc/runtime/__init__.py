"""One experiment object, several ways to run it."""

from lbc.runtime.experiment import Experiment, assemble
from lbc.runtime.loop import train
from lbc.runtime.run import LocalRun, Run, SerialRun

__all__ = ["Experiment", "LocalRun", "Run", "SerialRun", "assemble", "train"]
