"""The loop around a run: budget, reports, checkpoints, the end, whatever runtime plays it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from lbc.config import Config
from lbc.errors import TrainingError
from lbc.interfaces import Reporter
from lbc.runtime.experiment import Experiment, category, updates_planned
from lbc.runtime.initial import begin_with
from lbc.runtime.keeper import Agenda, Keeper
from lbc.runtime.run import RUNTIMES, Run
from lbc.types import Batch

PROGRESS_SECONDS = 0.25


@contextlib.contextmanager
def _telling_of_memory() -> Iterator[None]:
    """NumPy, PyTorch and CUDA say it in three ways; here it is one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = ("allocate memory", "enough memory", "out of memory", "size calculation overflowed")
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in known):
            raise
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise TrainingError(
            f"there is not enough memory ({what}); "
            "try smaller actor.num_envs, buffer.batch_size, buffer.sequence_length or model sizes. "
            "A checkpoint that was written is still valid."
        ) from error


@_telling_of_memory()
def train(
    config: Config,
    reporter: Reporter,
    directory: Path,
    should_stop: Callable[[], bool],
    resume: bool = False,
    on_checkpoint: Callable[[Path], object] | None = None,
) -> dict[str, Any]:
    """Runs to the budget's end or until asked to stop; returns the summary.

    `resume`: goes on from the newest checkpoint in `directory`.
    `on_checkpoint`: hears of every checkpoint that has reached the disk.
    """
    run: Run = RUNTIMES[config.run.runtime](config)
    agenda = Agenda(1.0 / config.run.reports, config.run.report_seconds, config.run.checkpoint_seconds)
    keeper = Keeper(directory / "checkpoints", config.run.checkpoint_form, on_checkpoint)
    tracker, progress_at, outcome = run.tracker, 0.0, "finished"
    try:
        if resume:
            reporter.rewind(keeper.restore(run, agenda))
            soon = tracker.progress() + 1.0 / config.run.reports  # the budget may have grown
            agenda.report_at = min(agenda.report_at, soon)
        elif config.run.init:
            begin_with(run.experiment, Path(config.run.init))
        reporter.start(header(run.experiment))
        while tracker.progress() < 1.0:
            if should_stop():
                outcome = "interrupted"
                break
            run.step()
            if tracker.seconds >= progress_at:
                reporter.progress(tracker.glance())
                keeper.look()
                progress_at = tracker.seconds + PROGRESS_SECONDS
            if tracker.progress() >= agenda.report_at or tracker.seconds >= agenda.report_seconds_at:
                reporter.report(run.report())
                agenda.report_at = tracker.progress() + 1.0 / config.run.reports
                agenda.report_seconds_at = tracker.seconds + config.run.report_seconds
            if tracker.seconds >= agenda.checkpoint_at:
                agenda.checkpoint_at = tracker.seconds + config.run.checkpoint_seconds
                keeper.save(run, agenda, reporter.mark())
                agenda.checkpoint_at = (
                    tracker.seconds + config.run.checkpoint_seconds
                )  # a slow disk took part
        run.settle()
        keeper.save(run, agenda, reporter.mark())
        keeper.wait()
    except TrainingError:
        with contextlib.suppress(TrainingError, OSError):  # the disk may be full; what failed first is told
            write_batch_statistics(directory / "failed_batch.json", run.last_batch)
            if run.resumable:  # its games stopped halfway; the last checkpoint knows them better
                keeper.save_weights(run)
            else:
                keeper.save(run, agenda, reporter.mark())
            reporter.finish(summary(run, "failed"))
        raise
    finally:
        run.close()
        keeper.close()
    reporter.report(run.report())
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
        "init": e.config.run.init or None,
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
        "init": experiment.config.run.init or None,
        "favourite_tau": favourite[:m].tolist(),
        "favourite_omega": favourite[m:].tolist(),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


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
