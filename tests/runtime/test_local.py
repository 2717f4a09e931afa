"""The local runtime: the same algorithm as in one process, with games and learners running at once."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from lbc.config import EnvironmentConfig
from lbc.errors import TrainingError
from lbc.runtime import LocalRun, SerialRun, train
from lbc.types import Batch
from tests.actor.test_actor import recomputed_log_mu
from tests.builders import catch_config
from tests.environments.test_workers import alive
from tests.runtime.test_serial import Notebook


def local_config(**sections: Any):
    wishes = {"actor": {"num_envs": 6, "workers": 2, "groups": 2}, "run": {}} | sections
    wishes["run"] = {"runtime": "local", "evaluation_episodes": 0} | wishes["run"]
    return catch_config(**wishes)


@pytest.fixture
def started():
    """Starts runs and closes them, whatever happens."""
    runs: list[LocalRun] = []

    def start(**sections: Any) -> LocalRun:
        runs.append(LocalRun(local_config(**sections)))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def test_a_run_ends_with_everything_a_serial_run_leaves(tmp_path):
    notebook = Notebook()
    summary = train(local_config(run={"frames": 1200}), notebook, tmp_path, lambda: False)
    assert summary["outcome"] == "finished" and summary["frames"] >= 1200
    assert summary["episodes"] > 100 and summary["updates"] > 50
    assert (tmp_path / "checkpoints" / "weights.safetensors").exists()
    assert notebook.headers[0]["runtime"] == "local"
    assert not multiprocessing.active_children(), "no process is left"


def test_given_the_same_batch_both_runtimes_learn_the_same():
    """Losses, gradients, weights and statistics after each of five batches: equal, bit for bit."""
    serial, local = SerialRun(catch_config()), None
    batches: list[Batch] = []
    while len(batches) < 5:
        serial.step()
        if serial.last_batch is not None and not (batches and batches[-1] is serial.last_batch):
            batches.append(serial.last_batch)
    torch.manual_seed(0)
    fresh = SerialRun(catch_config())
    local = LocalRun(local_config(actor={"num_envs": 4, "workers": 2}))
    try:
        for number, batch in enumerate(batches):
            fresh.crew.learn(batch, number / 10)
            local.crew.learn(batch, number / 10)
            local.crew.wait()
            for one, other in zip(fresh.experiment.learners, local.experiment.learners, strict=True):
                assert one.gradient_norm == other.gradient_norm
                ours, theirs = one.network.state_dict(), other.network.state_dict()
                assert ours.keys() == theirs.keys()
                assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    finally:
        local.close()


def test_stored_behavior_and_states_are_those_of_a_step_by_step_play(started):
    """Actors keep version 0 (no push): every mu of every batch is recomputed from the stored recurrent
    state, across borders of sequences and ends of episodes, for both groups."""
    run = started(learner={"push_interval": 10_000})
    e, checked = run.experiment, 0
    for _ in range(150):
        run.step()
        if run.last_batch is not None:
            batch = run.last_batch
            log_mu = recomputed_log_mu(batch, e.actor_networks, e.population, e.mapping)
            torch.testing.assert_close(log_mu, batch.log_mu, rtol=1e-9, atol=1e-9)
            checked += int(batch.first.any())
    run.settle()
    assert checked > 10 and e.learners[0].updates > 10


def test_no_step_is_lost_or_doubled(started):
    """A game that counts its steps, in three processes and three groups, ends by clock and by rule: every
    sequence of every copy follows the one before it, and is used exactly `replay` times."""
    config = local_config(
        actor={"num_envs": 9, "workers": 3, "groups": 3},
        buffer={"sequence_length": 5, "burn_in": 2, "batch_size": 4, "replay": 3},
        environment={},
    )
    config = replace(config, environment=EnvironmentConfig(id="tests.runtime.counting:make"))
    run = LocalRun(config)
    try:
        seen: Counter[tuple[int, ...]] = Counter()
        for _ in range(400):
            before = run.last_batch
            sampled: list[Batch] = []
            learn = run._learn

            def keep(batch: Batch, learn=learn, sampled=sampled) -> None:
                sampled.append(batch)
                learn(batch)

            run._learn = keep  # type: ignore[method-assign]
            run.step()
            run._learn = learn  # type: ignore[method-assign]
            assert run.last_batch is (sampled[-1] if sampled else before)
            for batch in sampled:
                rows = batch.observation[2:, :].long()  # [T + 1, S, 3], burn-in left out
                for s in range(rows.shape[1]):
                    check_consecutive(rows[:, s].tolist(), batch.first[2:, s].tolist())
                    seen[tuple(rows[0, s].tolist())] += 1
        numbers = {number for number, _, _ in seen}
        assert numbers == set(range(1, 10)), "copy e is seeded with seed + e, all of them play"
        assert set(Counter(seen.values())) <= {1, 2, 3}
        assert sum(count == 3 for count in seen.values()) > 0.9 * len(seen), "all but the newest"
        steps = run.tracker.frames
        assert steps > 0.8 * 400 * 3
    finally:
        run.close()


def check_consecutive(rows: list[list[int]], first: list[bool]) -> None:
    for (number, episode, step), (number_, episode_, step_), begins in zip(
        rows, rows[1:], first[1:], strict=False
    ):
        assert number == number_
        if begins and (episode, step) == (episode_, step_) == (0, 0):
            continue  # what would lie before the run repeats its first row
        if begins:
            assert (episode_, step_) == (episode + 1, 0) and step == 3 + (number + episode) % 5
        else:
            assert (episode_, step_) == (episode, step + 1)


def test_lag_is_bounded_by_one_batch_and_the_two_intervals(started):
    run = started(learner={"push_interval": 3}, actor={"num_envs": 6, "workers": 2, "pull_interval": 4})
    lags: list[float] = []
    learned = run.tracker.learned
    run.tracker.learned = lambda batch, lag: (lags.append(lag), learned(batch, lag))  # type: ignore
    for _ in range(300):
        run.step()
    # 6 environments x 4 steps between two pulls give 24 x 2 / (7 x 4) < 2 batches
    assert min(lags) >= 0 and max(lags) <= 3 + 2 + 1
    assert len(lags) > 50


def test_a_learner_s_failure_ends_the_run_in_one_sentence(tmp_path, monkeypatch):
    original = LocalRun._learn

    def poisoned(self, batch):
        if self.experiment.learners[0].updates >= 5:
            batch = replace(batch, reward=batch.reward.clone())
            batch.reward[3, 1] = math.inf
        original(self, batch)

    monkeypatch.setattr(LocalRun, "_learn", poisoned)
    config = local_config(population={"shapings": ("sqrt", "log", "sqrt")})
    with pytest.raises(TrainingError, match="non-finite"):
        train(config, Notebook(), tmp_path, lambda: False)
    assert not multiprocessing.active_children()


def test_the_evaluator_reports_every_way_to_play(started):
    """Weights that always move left catch a third of the balls of three columns, whoever plays them."""
    run = started(run={"evaluation_episodes": 20})
    for network in [*(x.network for x in run.experiment.learners), *run.experiment.actor_networks]:
        with torch.no_grad():
            network.logits[-1].weight.zero_()
            network.logits[-1].bias.copy_(torch.tensor([100.0, 0.0, 0.0]))
    for learner in run.experiment.learners:
        run.experiment.server.push(learner.policy.index, learner.network, version=1)
    run.learning = False
    deadline = time.monotonic() + 60
    report = run.report()
    while "eval_score" not in report and time.monotonic() < deadline:
        time.sleep(0.1)
        report = run.report()
    assert report["eval_frames"] == 0 and report["eval_episodes"] == 20
    assert set(report["eval_scores"]) == {"favourite", "component_1", "component_2", "component_3"}
    for name in ("component_1", "component_2", "component_3"):
        assert -1.0 < report["eval_scores"][name] < 0.4
    assert report["eval_score"] == report["eval_scores"]["favourite"]
    assert len(report["eval_psi"]) == 6


def test_training_goes_on_without_the_evaluator(started):
    run = started(run={"evaluation_episodes": 2})
    assert run.evaluator is not None
    run.evaluator._process.kill()
    run.evaluator._process.join()
    for _ in range(30):
        run.step()
    assert run.report()["eval_error"] == "the evaluation process has ended"


def test_nobody_waits_until_the_evaluator_has_read_the_weights(started):
    """It may be stopped, or get no core for long, and they are larger than what a pipe holds.

    It is left standing: the run must also close with weights on their way that nobody will read.
    """
    run = started(run={"evaluation_episodes": 2}, model={"head_units": 2048})
    assert run.evaluator is not None
    assert sum(x.nbytes for x in run.experiment.server.weights(0).values()) > 1e5
    deadline = time.monotonic() + 60
    while not run.evaluator._pipe.poll() and time.monotonic() < deadline:  # until it is ready
        time.sleep(0.05)
    os.kill(run.evaluator.pid, signal.SIGSTOP)
    report = threading.Thread(target=run.report, daemon=True)
    report.start()
    report.join(60)
    waits = report.is_alive()
    if waits:
        os.kill(run.evaluator.pid, signal.SIGCONT)
    assert not waits
    assert run.evaluator._sending is not None and run.evaluator._sending.is_alive(), "they are on their way"


@pytest.mark.filterwarnings("ignore:environment process")
def test_killed_workers_do_not_stop_a_run(started, monkeypatch):
    """Ten kills at random moments: no environment is lost, half an episode reaches no bandit."""
    run = started(learner={"push_interval": 10_000}, controller={"count_pulls": "start"})
    rng = random.Random(0)
    scores: list[float | None] = []
    end = run.experiment.controller.end
    monkeypatch.setattr(
        run.experiment.controller, "end", lambda i, score: (scores.append(score), end(i, score))
    )
    e = run.experiment
    for _ in range(10):
        os.kill(rng.choice(run.pool.pids), signal.SIGKILL)
        for _ in range(rng.randrange(50, 70)):
            run.step()
            if run.last_batch is not None:
                log_mu = recomputed_log_mu(run.last_batch, e.actor_networks, e.population, e.mapping)
                torch.testing.assert_close(log_mu, run.last_batch.log_mu, rtol=1e-9, atol=1e-9)
    run.settle()
    assert run.pool.failures == 10 and all(alive(pid) for pid in run.pool.pids)
    assert scores.count(None) >= 10, "lost episodes"
    heard = [score for score in scores if score is not None]
    assert len(heard) == run.tracker.episodes and set(heard) <= {-1.0, 1.0}, "whole episodes only"
    in_flight = sum(c.bandits.in_flight.sum() for c in e.controller.controllers)
    assert in_flight == 6 * len(e.space.dimensions), "six episodes are in flight, none is forgotten"


def test_time_is_accounted_for(started):
    run = started()
    for _ in range(40):
        run.step()
    shares = run.report()["time"]
    assert set(shares) == {"environments", "inference", "storage", "learners", "reports"}
    assert sum(shares.values()) == pytest.approx(1.0) and min(shares.values()) >= 0.0


def test_it_learns_catch(started):
    """A miniature: half of all balls are caught by chance, most of them after some thousand frames."""
    run = started(
        population={"discounts": (0.9, 0.95, 0.9)},
        behavior={"tau_high": math.exp(2) - 1, "tau_accuracy": 0.1},
        learner={"learning_rate": 3e-3, "push_interval": 1, "warmup_steps": 100},
        actor={"num_envs": 16, "workers": 2, "pull_interval": 1},
        run={"frames": 16_000, "score_window": 200},
    )
    weights = [copy.deepcopy(learner.network.state_dict()) for learner in run.experiment.learners]
    early = math.inf
    while run.tracker.progress() < 1.0 and not run.tracker.score_mean > early + 0.3:
        run.step()
        if early == math.inf and run.tracker.episodes >= 200:
            early = run.tracker.score_mean
    run.settle()
    assert run.tracker.score_mean > early + 0.3
    moved = run.experiment.learners[0].network.state_dict()
    assert any(not torch.equal(weights[0][name], moved[name]) for name in moved)
