"""``run.init``: a run that begins with the weights of another one."""

from __future__ import annotations

import warnings
from pathlib import Path

from torch import Tensor

from lbc.errors import UserError
from lbc.parameters.trained import read_trained
from lbc.runtime.experiment import Experiment


def begin_with(experiment: Experiment, directory: Path) -> None:
    """Networks with their running statistics come from the run in `directory`; optimizers, counters and
    controller are new."""
    if not directory.is_dir():
        raise UserError(f"run.init is '{directory}', but there is no such directory.")
    found = read_trained(directory / "checkpoints")
    for complaint in found.complaints:
        warnings.warn(complaint, stacklevel=2)
    learners = experiment.learners
    if len(found.weights) != len(learners):
        raise UserError(
            f"run.init '{directory}' has {len(found.weights)} policies, but this run has {len(learners)}."
        )
    for learner, weights in zip(learners, found.weights, strict=True):
        own = learner.network.state_dict()
        difference = first_difference(own, weights)
        if difference:
            raise UserError(f"the weights of run.init '{directory}' do not fit: {difference}.")
        learner.network.load_state_dict(weights)
        learner.restore_optimizer({})  # the mean of the weights begins with these
        experiment.server.push(learner.policy.index, learner.network, version=0)


def first_difference(here: dict[str, Tensor], there: dict[str, Tensor]) -> str:
    """In words; empty where names and shapes agree."""
    for name, tensor in here.items():
        if name not in there:
            return f"'{name}' exists only here"
        if there[name].shape != tensor.shape:
            return f"'{name}' has shape {tuple(there[name].shape)} there and {tuple(tensor.shape)} here"
    return next((f"'{name}' exists only there" for name in there if name not in here), "")
