"""Learners in processes of their own: the same updates, and nothing hangs or is lost when one dies."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from multiprocessing.connection import wait

import pytest
import torch

from lbc.config import TargetConfig
from lbc.environments.processes import process_context
from lbc.errors import TrainingError, UserError
from lbc.models.torso import CENTRING_BATCHES
from lbc.parameters.shared import SharedTensors
from lbc.runtime import LocalRun, SerialRun, train
from lbc.runtime import learner_processes as module
from lbc.runtime.crew import Crew
from lbc.runtime.learner_processes import ProcessCrew
from lbc.types import Batch
from tests.builders import batch, catch_config, learner, network
from tests.runtime.test_local import local_config
from tests.runtime.test_serial import Notebook


def some_batch() -> Batch:
    """Of a run that `crew` would fit."""
    run = SerialRun(catch_config())
    while run.last_batch is None:
        run.step()
    return run.last_batch


@pytest.fixture
def run():
    run = LocalRun(local_config(learner={"push_interval": 1}))
    yield run
    run.close()
    assert not multiprocessing.active_children()


def state(one) -> list[torch.Tensor]:
    return [x.detach().clone() for x in one.live_tensors()]


def equal(ours, theirs) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def doubled(shared: SharedTensors, pipe) -> None:
    for tensor in shared.tensors():
        tensor.copy_(tensor + tensor)
    pipe.send(1)


def test_tensors_are_seen_from_both_sides():
    images = torch.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    kinds = [images, torch.tensor(3, dtype=torch.int64), torch.ones(5, dtype=torch.bool), torch.zeros(2, 0)]
    kinds += [torch.arange(7, dtype=torch.uint8), torch.arange(12.0).view(3, 4)[:, :2]]
    context = process_context()
    shared = SharedTensors.like(kinds, context)
    mine = shared.tensors()
    assert equal(mine, kinds) and [x.dtype for x in mine] == [x.dtype for x in kinds]
    assert mine[0].is_contiguous(memory_format=torch.channels_last)
    ours, theirs = context.Pipe()
    process = context.Process(target=doubled, args=(shared, theirs))
    process.start()
    theirs.close()
    assert ours.poll(120) and ours.recv() == 1
    process.join()
    assert equal(mine, [x + x for x in kinds])


OPTIONS = {
    "plain": ({}, {"policy": "printed"}),
    "statistics": ({"centre_features": True, "centre_observations": True}, {}),
    "scale-free": ({}, {"policy": "scale_free"}),
    "decoupled": ({"value_head": "own", "head_units": 8}, {"policy": "decoupled"}),
}


@pytest.mark.parametrize(("model", "target"), OPTIONS.values(), ids=list(OPTIONS))
def test_live_tensors_are_all_that_an_update_changes(model, target):
    """Whoever gets them goes on as their owner does, although all else about it is as it was built."""
    options = {"popart": True, "bound_targets": True}
    nets = (network(target=TargetConfig(**target), seed=seed, **model) for seed in (0, 1))
    one, other = (learner(net, **options) for net in nets)
    for number in range(3):
        one.update(batch(seed=number), 0.5)
    other.live_in([x.detach().clone() for x in one.live_tensors()])
    other.updates = one.updates
    before = state(one)
    for x in (one, other):
        x.update(batch(seed=7), 0.5)
    assert equal(state(one), state(other)) and one.gradient_norm == other.gradient_norm
    assert not equal(before, state(one))


def test_every_learner_has_a_process_and_what_it_learned_is_here(run):
    assert isinstance(run.crew, ProcessCrew) and not run.crew.pids, "they begin with the first batch"
    learners, server = run.experiment.learners, run.experiment.server
    before = [state(one) for one in learners]
    run.crew.learn(some_batch(), 0.25)
    run.crew.wait()
    assert len(set(run.crew.pids)) == len(learners) and os.getpid() not in run.crew.pids
    for one, was in zip(learners, before, strict=True):
        assert one.updates == 1 and math.isfinite(one.gradient_norm) and not equal(was, state(one))
        weights = server.weights(one.policy.index)
        assert all(torch.equal(x, weights[name]) for name, x in one.network.state_dict().items())
    assert run.crew.busy > 0


def test_what_is_restored_here_is_what_they_go_on_with(run):
    """As after a checkpoint: weights, moments and the number of updates."""
    one = run.experiment.learners[0]
    serial = SerialRun(catch_config())
    twin, work = serial.experiment.learners[0], some_batch()
    for _ in range(3):
        serial.crew.learn(work, 0.5)
    run.crew.learn(work, 0.1)
    run.crew.wait()
    one.resume(twin.snapshot())
    for each in (run, serial):
        each.crew.learn(work, 0.6)
        each.crew.wait()
    assert one.updates == twin.updates == 4 and equal(state(one), state(twin))


def test_they_know_how_old_their_learner_is():
    """The torso follows the observations' mean while it is young."""
    run = LocalRun(local_config(model={"centre_observations": True}))
    try:
        one, work = run.experiment.learners[0], some_batch()
        for updates, follows in ((0, True), (CENTRING_BATCHES, False)):
            one.updates, before = updates, one.network.torso.mean.clone()
            run.crew.learn(replace(work, frame=work.frame + updates), 0.1)
            run.crew.wait()
            assert (not torch.equal(one.network.torso.mean, before)) == follows
    finally:
        run.close()


def test_threads_where_they_are_asked_for_or_needed():
    for wishes in ({"run": {"learner_processes": False}}, {"target": {"shared": True}}):
        run = LocalRun(local_config(**wishes))
        try:
            assert type(run.crew) is Crew
        finally:
            run.close()


def test_one_that_is_killed_is_replaced_once(run):
    work, learners = some_batch(), run.experiment.learners
    run.crew.learn(work, 0.1)
    run.crew.wait()
    pushed = run.experiment.server.weights(1)
    first = run.crew.pids
    os.kill(first[1], signal.SIGSTOP)
    run.crew.learn(work, 0.2)
    os.kill(first[1], signal.SIGKILL)
    with pytest.warns(
        UserWarning, match=r"policy 2 .* ended by itself \(exit code -9\).* goes back to update 1"
    ):
        run.crew.wait()
    weights = learners[1].network.state_dict()
    assert all(torch.equal(x, pushed[name]) for name, x in weights.items())
    assert [one.setbacks for one in learners] == [0, 1, 0][: len(learners)]
    assert [one.updates for one in learners] == [2, 1, 2][: len(learners)]
    run.crew.learn(work, 0.3)
    run.crew.wait()
    assert learners[1].updates == 2 and not set(run.crew.pids) & set(first)
    os.kill(run.crew.pids[1], signal.SIGKILL)
    run.crew.learn(work, 0.4)
    with pytest.raises(TrainingError, match=r"policy 2 .* ended by itself"):
        run.crew.wait()


def test_what_was_learned_is_published_without_waiting(run):
    one, server = run.experiment.learners[0], run.experiment.server
    run.crew.learn(some_batch(), 0.1)
    deadline = time.monotonic() + 120
    while server.version(0) == 0 and time.monotonic() < deadline:
        run.crew.look()
    assert server.version(0) == one.updates == 1
    os.kill(run.crew.pids[0], signal.SIGSTOP)
    run.crew.learn(some_batch(), 0.2)
    wait([process.pipe for process in run.crew._processes[1:]], 120)
    run.crew.look()  # the first is still at work: it is not waited for
    assert server.version(1) == 1
    os.kill(run.crew.pids[0], signal.SIGCONT)
    run.crew.wait()
    assert server.version(0) == server.version(1) == 2


def test_an_own_torso_that_replaces_a_tensor_is_told_so():
    """It would be seen by nobody else."""
    run = LocalRun(local_config(model={"torso": "tests.runtime.own_parts:Replacing"}))
    try:
        run.crew.learn(some_batch(), 0.1)
        with pytest.raises(UserError, match=r"replaces a tensor .* run\.learner_processes=false"):
            run.crew.wait()
    finally:
        run.close()


def test_threads_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr(module, "ROOM", 10**18)
    with pytest.warns(UserWarning, match="learners run in threads"):
        run = LocalRun(local_config())
    try:
        assert type(run.crew) is Crew
    finally:
        run.close()


def test_what_goes_wrong_there_is_told_here(run):
    work = some_batch()
    run.crew.learn(replace(work, action=torch.full_like(work.action, 99)), 0.1)
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*out of bounds"):
        run.crew.wait()


def test_too_little_memory_there_is_one_sentence_here(tmp_path):
    shapings = ("sqrt", "log", "tests.runtime.own_parts:greedy")
    with pytest.raises(TrainingError, match=r"^there is not enough memory \(.*checkpoint .* still valid"):
        train(local_config(population={"shapings": shapings}), Notebook(), tmp_path, lambda: False)


def test_killed_learners_do_not_stop_a_run(tmp_path):
    killed = []

    def should_stop() -> bool:
        found = [p.pid for p in multiprocessing.active_children() if p.name == "lbc-learner-1"]
        if found and not killed:
            killed.append(os.kill(found[0], signal.SIGKILL))
        return False

    notebook = Notebook()
    with pytest.warns(UserWarning, match="goes back to update"):
        summary = train(local_config(run={"frames": 1500, "reports": 5}), notebook, tmp_path, should_stop)
    assert killed and summary["outcome"] == "finished" and summary["updates"] > 20
    assert notebook.reports[-1]["setbacks"] >= 1
    assert not multiprocessing.active_children()
