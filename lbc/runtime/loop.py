"""The loop around a run: budget, reports, checkpoints, the end, whatever runtime plays it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lbc.config import Config
from lbc.errors import TrainingError
from lbc.interfaces import Reporter
from lbc.parameters import save_weights
from lbc.runtime.experiment import Experiment, category, updates_planned
from lbc.runtime.run import RUNTIMES, Run
from lbc.types import Batch

PROGRESS_SECONDS = 0.25


def train(
    config: Config, reporter: Reporter, directory: Path, should_stop: Callable[[], bool]
) -> dict[str, Any]:
    """Runs to the budget's end or until asked to stop; returns the summary."""
    run: Run = RUNTIMES[config.run.runtime](config)
    reporter.start(header(run.experiment))
    report_at, checkpoint_at, progress_at = 1.0 / config.run.reports, config.run.checkpoint_seconds, 0.0
    seconds_at = config.run.report_seconds
    tracker = run.tracker
    outcome = "finished"
    try:
        while tracker.progress() < 1.0:
            if should_stop():
                outcome = "interrupted"
                break
            run.step()
            if tracker.seconds >= progress_at:
                reporter.progress(tracker.snapshot())
                progress_at = tracker.seconds + PROGRESS_SECONDS
            if tracker.progress() >= report_at or tracker.seconds >= seconds_at:
                reporter.report(run.report())
                report_at = tracker.progress() + 1.0 / config.run.reports
                seconds_at = tracker.seconds + config.run.report_seconds
            if tracker.seconds >= checkpoint_at:
                run.settle()
                save_checkpoint(run, directory)
                checkpoint_at = tracker.seconds + config.run.checkpoint_seconds
        run.settle()
    except TrainingError:
        write_batch_statistics(directory / "failed_batch.json", run.last_batch)
        save_checkpoint(run, directory)
        reporter.finish(summary(run, "failed"))
        raise
    finally:
        run.close()
    reporter.report(run.report())
    save_checkpoint(run, directory)
    result = summary(run, outcome)
    reporter.finish(result)
    return result


def header(e: Experiment) -> dict[str, Any]:
    timed = e.config.run.minutes > 0
    return {
        "category": category(e.config, e.space),
        "environment": e.spec.id,
        "device": str(e.device),
        "policies": len(e.population),
        "target_policy": e.config.target.policy,
        "controller": f"{e.config.controller.kind}, {e.controller.scope}",
        "runtime": e.config.run.runtime,
        "environments": e.num_envs,
        "parameters": sum(p.numel() for p in e.learners[0].network.parameters()),
        "updates_planned": None if timed else updates_planned(e.config, e.spec.frames_per_step),
        "threads": torch.get_num_threads(),
    }


def summary(run: Run, outcome: str) -> dict[str, Any]:
    tracker, experiment = run.tracker, run.experiment
    m = experiment.space.components
    favourite = experiment.controller.favourite()
    return {
        "outcome": outcome,
        "environment": experiment.spec.id,
        "category": category(experiment.config, experiment.space),
        "frames": tracker.frames,
        "seconds": tracker.seconds,
        "frames_per_second": tracker.frames / max(tracker.seconds, 1e-9),
        "episodes": tracker.episodes,
        "updates": experiment.learners[0].updates,
        "score_mean": tracker.score_mean,
        "best_score_mean": tracker.best_mean if tracker.best_mean > float("-inf") else None,
        "score_max": tracker.score_max if tracker.episodes else None,
        "score_window": experiment.config.run.score_window,
        "favourite_tau": favourite[:m].tolist(),
        "favourite_omega": favourite[m:].tolist(),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def save_checkpoint(run: Run, directory: Path) -> None:
    folder = directory / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    weights = [learner.network.state_dict() for learner in run.experiment.learners]
    save_weights(folder / "weights.safetensors", weights, {"frames": str(run.tracker.frames)})


def write_batch_statistics(path: Path, batch: Batch | None) -> None:
    """What was in the batch that broke the loss: range, mean and non-finite count of every field."""
    if batch is None:
        return
    statistics = {}
    for name, x in vars(batch).items():
        if isinstance(x, torch.Tensor) and x.numel():
            y = x.double()
            finite = y[torch.isfinite(y)]
            statistics[name] = {
                "shape": list(x.shape),
                "non_finite": int(y.numel() - finite.numel()),
                "min": float(finite.min()) if finite.numel() else None,
                "mean": float(finite.mean()) if finite.numel() else None,
                "max": float(finite.max()) if finite.numel() else None,
            }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(statistics, indent=1))
