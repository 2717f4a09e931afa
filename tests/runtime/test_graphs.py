"""Thoughts and updates as CUDA graphs give the numbers of the eager path; these tests need a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lbc.actor import Mind
from lbc.actor.graphed import GraphedMind
from lbc.cards import resolve
from lbc.runtime import LocalRun, SerialRun
from lbc.runtime.crew import Crew, GraphedCrew
from lbc.runtime.experiment import assemble
from lbc.types import Batch
from tests.actor.test_actor import recomputed_log_mu
from tests.builders import catch_config

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

TOLERANCE = {"float32": {"rtol": 1e-4, "atol": 1e-5}, "bfloat16": {"rtol": 0.05, "atol": 0.02}}
PRECISIONS = list(TOLERANCE)


def on_cuda(precision: str = "float32", centred: bool = False, minibatches: int = 1, **run):
    run = {"device": "cuda", "precision": precision, "evaluation_episodes": 0} | run
    model = {"lstm_units": 64, "centre_features": centred}  # a size that whole sequences have kernels for
    learner = {"entropy_scaling": 0.5, "entropy_schedule": "linear"}  # a graph must see what changes, too
    learner |= {"minibatches": minibatches, "averaged_updates": 10}
    population = {"first_discounts": (0.5, 0.6, 0.7)}
    return catch_config(model=model, learner=learner, population=population, run=run)


@pytest.fixture(autouse=True)
def exact_products():
    """A run in bfloat16 allows TF32 for the whole process; every test begins without."""
    torch.set_float32_matmul_precision("highest")


def pong(precision: str, *more: str):
    """Stacked, centred images, which in bfloat16 a kernel makes."""
    sets = ["actor.num_envs=12", f"run.precision={precision}", "run.device=cuda", "run.evaluation_episodes=0"]
    e = assemble(resolve("atari-fast", [*sets, *more]))
    for net in e.actor_networks:
        net.torso.mean.uniform_()
        net.torso.variance.fill_(0.1)
    return e


def deep_pong(precision: str):
    """A torso with kernels of its own between the convolutions."""
    return pong(precision, "model.torso=impala", "environment.image_size=48")


@pytest.mark.parametrize("built", [lambda precision: assemble(on_cuda(precision)), pong, deep_pong])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_graphed_mind_thinks_what_the_plain_one_does(precision, built):
    e = built(precision)
    count, rng = e.num_envs, np.random.default_rng(0)
    largest = 255 if e.spec.frame_dtype is np.uint8 else 1
    parts = (e.spec, count, e.actor_networks, e.population, e.mapping, e.target, 7, e.device, e.dtype)
    plain, graphed = Mind(*parts, watched=2), GraphedMind(*parts, watched=2)
    agreed = thoughts = 0
    for t in range(30):
        if t == 20:  # the others are let go
            for mind in (plain, graphed):
                mind.keep(np.arange(0, count, 2))
            count = len(range(0, count, 2))
        thoughts += count
        frame = (largest * rng.random((count, *e.spec.frame_shape))).astype(e.spec.frame_dtype)
        psi = np.stack([e.controller.start(i) for i in range(count)])
        first = np.ones(count) if t == 0 else rng.random(count) < 0.2
        ends, reward = rng.random((2, count)) < 0.2, rng.normal(size=count)
        numbers = np.column_stack([first, np.where(first, 0.0, reward), ends[0], ~ends[1], psi])
        theirs = plain.think(frame, numbers)
        kept = [x.clone() for x in (theirs.row.log_mu, theirs.row.log_pi, theirs.state)]
        ours = graphed.think(frame, numbers)
        for mine, other in zip((ours.row.log_mu, ours.row.log_pi, ours.state), kept, strict=True):
            torch.testing.assert_close(mine, other, **TOLERANCE[precision])
        np.testing.assert_allclose(ours.value, theirs.value, **TOLERANCE[precision])
        agreed += int((ours.actions == theirs.actions).sum())
        plain._action.copy_(graphed._action)  # a different draw must not part the two
        plain._state.copy_(graphed._state)
    assert agreed >= 0.9 * thoughts, "the same generator draws the same actions"


def batches(count: int) -> list[Batch]:
    serial, found = SerialRun(on_cuda(runtime="serial")), []
    while len(found) < count:
        serial.step()
        if serial.last_batch is not None and not (found and found[-1] is serial.last_batch):
            found.append(serial.last_batch)
    return found


@pytest.mark.parametrize(("centred", "minibatches"), [(False, 1), (True, 1), (False, 3)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_graphed_learners_learn_what_plain_ones_do(precision, centred, minibatches):
    eager, graphed = (assemble(on_cuda(precision, centred, minibatches)) for _ in range(2))
    crews = [Crew(eager.learners, eager.server, 1, threads=False)]
    crews.append(GraphedCrew(graphed.learners, graphed.server, 1))
    for number, batch in enumerate(batches(6)):
        for crew in crews:
            crew.learn(batch, number / 10)
            crew.wait()
        for one, other in zip(eager.learners, graphed.learners, strict=True):
            assert one.updates == other.updates == minibatches * (number + 1)
            assert one.gradient_norm == pytest.approx(
                other.gradient_norm, rel=10 * TOLERANCE[precision]["rtol"]
            )
            ours, theirs = one.network.state_dict(), other.network.state_dict()
            for name in ours:
                torch.testing.assert_close(theirs[name], ours[name], **TOLERANCE[precision], msg=name)
    assert all(crew.busy > 0.0 for crew in crews)


def test_stored_behavior_is_the_recomputed_one_and_every_row_arrives():
    config = catch_config(
        run={"device": "cuda", "precision": "float32", "runtime": "local", "evaluation_episodes": 0},
        actor={"num_envs": 6, "workers": 2, "groups": 2},
        learner={"push_interval": 10_000},
    )
    run = LocalRun(config)
    try:
        assert all(isinstance(actor.mind, GraphedMind) for actor in run.actors)
        e, checked = run.experiment, 0
        for _ in range(150):
            run.step()
            if run.last_batch is not None:
                log_mu = recomputed_log_mu(run.last_batch, e.actor_networks, e.population, e.mapping)
                torch.testing.assert_close(log_mu, run.last_batch.log_mu, rtol=1e-4, atol=1e-4)
                checked += int(run.last_batch.first.any())
        run.settle()
        assert checked > 10 and e.learners[0].updates > 10
    finally:
        run.close()


@pytest.mark.parametrize("envs", [64, 32, 96, 128])
def test_one_run_after_the_other_in_one_process(envs):
    """Memory of the run before may be handed out again: it must not count as page-locked any more."""
    run = {"device": "cuda", "runtime": "local", "evaluation_episodes": 0}
    for groups in (2, 4, 1):
        config = catch_config(run=run, actor={"num_envs": envs, "workers": 2, "groups": groups})
        local = LocalRun(config)
        try:
            for _ in range(30):
                local.step()
            local.settle()
            assert all(actor.mind._pinned for actor in local.actors)
        finally:
            local.close()
