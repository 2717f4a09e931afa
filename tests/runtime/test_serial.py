"""The serial runtime from outside: what a run reports, keeps and says when it ends."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from lbc.errors import TrainingError
from lbc.parameters import load_weights
from lbc.runtime import SerialRun, loop, train
from lbc.runtime.experiment import assemble, category, updates_planned
from lbc.types import ProgressSnapshot
from tests.builders import catch_config


class Notebook:
    """A reporter that keeps what it hears."""

    def __init__(self) -> None:
        self.headers: list[dict[str, Any]] = []
        self.snapshots: list[ProgressSnapshot] = []
        self.reports: list[dict[str, Any]] = []
        self.summaries: list[dict[str, Any]] = []

    def start(self, header: dict[str, Any]) -> None:
        self.headers.append(header)

    def progress(self, snapshot: ProgressSnapshot) -> None:
        self.snapshots.append(snapshot)

    def report(self, metrics: dict[str, Any]) -> None:
        self.reports.append(metrics)

    def mark(self) -> int:
        return len(self.reports)

    def rewind(self, mark: int) -> None:
        del self.reports[mark:]

    def finish(self, summary: dict[str, Any]) -> None:
        self.summaries.append(summary)


def test_a_run_spends_its_budget_and_keeps_its_weights(tmp_path):
    notebook = Notebook()
    config = catch_config(run={"frames": 300, "reports": 3})
    result = train(config, notebook, tmp_path, lambda: False)
    assert result["outcome"] == "finished" and notebook.summaries == [result]
    assert 300 <= result["frames"] < 300 + config.actor.num_envs
    assert len(notebook.headers) == 1 and len(notebook.reports) >= 3
    frames = [report["frames"] for report in notebook.reports]
    assert frames == sorted(frames) and frames[-1] == result["frames"]
    weights = load_weights(tmp_path / "checkpoints" / "weights.safetensors")
    assert len(weights) == 3
    assemble(config).learners[2].network.load_state_dict(weights[2])
    json.dumps(result), json.dumps(notebook.reports), json.dumps(notebook.headers)


@pytest.mark.parametrize("minibatches", [1, 2])
def test_planned_updates_are_about_those_made(tmp_path, minibatches):
    notebook = Notebook()
    config = catch_config(run={"frames": 600}, learner={"minibatches": minibatches})
    result = train(config, notebook, tmp_path, lambda: False)
    planned = updates_planned(config, frames_per_step=1)
    assert notebook.headers[0]["updates_planned"] == planned
    # Rows between episodes are stored but are not frames, so a run of short episodes makes more updates.
    assert planned * 0.9 < result["updates"] < planned * 1.5


def test_a_run_that_is_asked_to_stop_says_so(tmp_path):
    notebook = Notebook()
    calls = iter([False] * 20 + [True])
    result = train(catch_config(), notebook, tmp_path, lambda: next(calls))
    assert result["outcome"] == "interrupted" and result["frames"] < 100
    assert len(notebook.summaries) == 1 and len(notebook.reports) >= 1
    assert (tmp_path / "checkpoints" / "weights.safetensors").exists()


def test_weights_are_kept_on_the_way(tmp_path):
    path = tmp_path / "checkpoints" / "weights.safetensors"
    seen = []

    def stop() -> bool:
        seen.append(path.exists())
        return len(seen) == 4

    train(catch_config(run={"checkpoint_seconds": 1e-9}), Notebook(), tmp_path, stop)
    assert seen == [False, True, True, True]


def test_a_failing_run_keeps_good_weights_and_the_batch_that_broke_it(tmp_path, monkeypatch):
    original = SerialRun._learn

    def poisoned(self, batch):
        if self.experiment.learners[0].updates == 5:
            batch.reward[3, 1] = math.inf
        original(self, batch)

    monkeypatch.setattr(SerialRun, "_learn", poisoned)
    notebook = Notebook()
    with pytest.raises(TrainingError, match="non-finite"):
        train(
            catch_config(population={"shapings": ("sqrt", "log", "sqrt")}), notebook, tmp_path, lambda: False
        )
    assert [summary["outcome"] for summary in notebook.summaries] == ["failed"]
    for weights in load_weights(tmp_path / "checkpoints" / "weights.safetensors"):
        assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())
    statistics = json.loads((tmp_path / "failed_batch.json").read_text())
    assert statistics["reward"]["non_finite"] == 1
    assert statistics["log_mu"]["non_finite"] == 0
    assert statistics["reward"]["min"] >= -1.0 and statistics["reward"]["max"] <= 1.0


def test_frames_are_those_that_an_action_caused():
    """Four environments of Catch with 4-step episodes: one row in five is a restart and not a frame."""
    run = SerialRun(catch_config())
    for _ in range(50):
        run.step()
    assert run.tracker.frames == 4 * 50 - 4 * 10
    assert run.tracker.episodes == 4 * 10


def test_progress_follows_frames_or_the_clock(monkeypatch):
    run = SerialRun(catch_config(run={"frames": 100}))
    assert run.tracker.progress() == 0.0
    run.tracker.frames = 25
    assert run.tracker.progress() == 0.25
    run.tracker.frames = 500
    assert run.tracker.progress() == 1.0
    timed = SerialRun(catch_config(run={"minutes": 2.0}))
    monkeypatch.setattr(type(timed.tracker), "seconds", property(lambda _: 30.0))
    assert timed.tracker.progress() == 0.25


def test_the_category_names_the_kind_of_behavior_control():
    """Three policies, (gamma, RS) each; psi of 6 numbers; 20^3 x 10^3 combinations of regions."""
    e = assemble(catch_config())
    assert category(e.config, e.space) == f"LBC-H^2_3-Psi^6_{20**3 * 10**3}"


def test_reports_hold_every_policy_and_every_dimension():
    run = SerialRun(catch_config())
    for _ in range(40):
        run.step()
    metrics = run.tracker.metrics(run.oldest_episode(), run.last_batch)
    assert len(metrics["policies"]) == 3 and len(metrics["dimensions"]) == 6
    for signs in metrics["policies"]:
        for name in ("target_entropy", "kl_to_behavior", "gradient_norm", "explained_variance", "loss_q"):
            assert name in signs
    assert 0.0 <= metrics["behavior_entropy"] <= math.log(3) + 1e-9
    assert sum(metrics["responsibility"]) == pytest.approx(1.0)
    assert metrics["sample_age"] >= 0.0 and metrics["policy_lag"] >= 0.0
    assert metrics["kl_between_policies"] >= 0.0


def test_a_run_begins_with_the_pushed_weights():
    """Version 0 reaches the actor before its first action."""
    run = SerialRun(catch_config())
    run.step()
    e = run.experiment
    for actor_network, learner in zip(e.actor_networks, e.learners, strict=True):
        pairs = zip(actor_network.parameters(), learner.network.parameters(), strict=True)
        assert all(torch.equal(p, q) for p, q in pairs)
    assert loop.header(e)["policies"] == 3
