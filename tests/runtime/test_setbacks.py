"""A learner that meets non-finite values: back to what it pushed last, once; the second time is the end."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from lbc.errors import TrainingError
from lbc.parameters import ParameterServer, load_weights
from lbc.runtime import LocalRun, SerialRun, train
from lbc.runtime.crew import Crew, GraphedCrew
from lbc.runtime.run import Run
from lbc.types import Batch
from tests.builders import batch, catch_config, learner, network
from tests.runtime.test_local import local_config
from tests.runtime.test_serial import Notebook

SHAPED = {"shapings": ("sqrt", "log", "tanh")}  # tanh makes the infinite finite: two of three learners fail
CONFIGS = {SerialRun: catch_config, LocalRun: local_config}


def poisoned(one: Batch) -> Batch:
    reward = one.reward.clone()
    reward[3, 1] = math.inf
    return replace(one, reward=reward)


def poison(monkeypatch: pytest.MonkeyPatch, kind: type[Run], at: Callable[[int], bool]) -> None:
    """The batches whose number `at` names have an infinite reward."""
    learn, number = kind._learn, [0]

    def spoiled(self: Run, one: Batch) -> None:
        number[0] += 1
        learn(self, poisoned(one) if at(number[0]) else one)

    monkeypatch.setattr(kind, "_learn", spoiled)


@pytest.mark.parametrize("kind", [SerialRun, LocalRun])
def test_once_is_forgiven_and_counted(tmp_path, monkeypatch, kind):
    poison(monkeypatch, kind, lambda number: number == 8)
    notebook = Notebook()
    config = CONFIGS[kind](population=SHAPED, run={"frames": 1500, "reports": 5})
    with pytest.warns(UserWarning, match=r"policy [12] met a non-finite gradient .* goes back to update 6"):
        summary = train(config, notebook, tmp_path, lambda: False)
    assert summary["outcome"] == "finished" and summary["updates"] > 20
    assert notebook.reports[-1]["setbacks"] == 2
    for weights in load_weights(tmp_path / "checkpoints" / "weights.safetensors"):
        assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())


@pytest.mark.parametrize("kind", [SerialRun, LocalRun])
def test_the_second_time_ends_the_run(tmp_path, monkeypatch, kind):
    poison(monkeypatch, kind, lambda number: number in (8, 12))
    config = CONFIGS[kind](population=SHAPED, run={"frames": 1500})
    with (
        pytest.warns(UserWarning, match="next time the run ends"),
        pytest.raises(TrainingError, match=r"non-finite gradient .*failed_batch\.json"),
    ):
        train(config, Notebook(), tmp_path, lambda: False)
    assert json.loads((tmp_path / "failed_batch.json").read_text())["reward"]["non_finite"] == 1


def spoil(one) -> None:
    """What a captured update leaves behind, because a graph cannot stop halfway."""
    with torch.no_grad():
        for tensor in one.network.state_dict().values():
            tensor.fill_(math.nan)
        for moments in one._optimizer.moments.values():
            for moment in moments:
                moment.fill_(math.nan)
    one.gradient_norm = math.nan


class Graphed:
    """Stands in for a captured update, which needs CUDA: spoils first and complains afterwards."""

    seconds = 0.5

    def __init__(self, one) -> None:
        self.learner = one

    def finish(self) -> None:
        spoil(self.learner)
        self.learner.refuse_non_finite()


def test_going_back_mends_weights_moments_and_statistics():
    """Whatever a failed update has spoiled: everything is as it was pushed, and learning goes on."""
    one, server = learner(network(), popart=True), ParameterServer()
    crew = GraphedCrew([one], server, push_interval=2)
    server.push(0, one.network, 0)
    for _ in range(4):
        one.update(batch(), 0.5)
    server.push(0, one.network, one.updates)
    pushed = {name: tensor.clone() for name, tensor in one.network.state_dict().items()}
    one.update(batch(seed=1), 0.5)
    crew._updates, crew._working = [Graphed(one)], True
    with pytest.warns(UserWarning, match="goes back to update 4"):
        crew.wait()
    assert all(torch.equal(tensor, pushed[name]) for name, tensor in one.network.state_dict().items())
    assert not any(bool(moment.any()) for moments in one.optimizer_state().values() for moment in moments)
    Crew([one], server, 2, threads=False).learn(batch(seed=2), 0.5)
    assert math.isfinite(one.gradient_norm) and one.updates == 6 and crew.busy == 0.5
    assert all(bool(torch.isfinite(tensor).all()) for tensor in one.network.state_dict().values())
    crew._working = True
    with pytest.raises(TrainingError, match="non-finite"):
        crew.wait()
    assert all(
        torch.equal(tensor, server.weights(0)[name]) for name, tensor in one.network.state_dict().items()
    )


def test_a_resumed_learner_remembers():
    one, other = learner(network()), learner(network())
    one.go_back(one.network.state_dict())
    other.resume(one.snapshot())
    assert other.setbacks == 1
