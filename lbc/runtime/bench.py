"""How fast is this machine, and how much of that does training reach?

One run measures all: the bare emulator (every core steps random actions, nothing is looked at), acting
without learning, training, the bare emulator again, because machines drift, and once more with the processes
and environments of training, which may be faster than one process per core.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from lbc.config import Config
from lbc.environments.cores import usable_cores
from lbc.environments.workers import WorkerPool
from lbc.runtime.run import RUNTIMES, LocalRun, Run

BARE_ENVS = 32  # per process
Say = Callable[[str], None]


@dataclass
class Speed:
    """What `measure` found for one game; frames are emulator frames, rates per second."""

    environment: str
    bare_before: float
    bare_after: float = 0.0
    bare_alike: float | None = None  # with the processes and environments of the run
    acting: float = 0.0
    trained: float = 0.0
    learner_samples: float = 0.0  # trained frames x policies x uses of each
    updates: float = 0.0  # of one learner
    policy_lag: float | None = None  # updates
    sample_age: float | None = None  # actor steps
    time: dict[str, float] = field(default_factory=dict)  # of the main thread while training
    learner_busy: float = 0.0  # mean share of the time that a learner worked, on a core or on the device
    bytes_per_step: int = 0
    memory_before: float = 0.0  # MB, all processes
    memory_after: float = 0.0
    device_memory: float = 0.0  # MB, at most

    @property
    def ratio(self) -> float:
        """Trained over bare, the better of its two measurements."""
        return self.trained / max(self.bare_before, self.bare_after, 1e-9)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"trained_over_bare": self.ratio}


def measure(config: Config, seconds: float, say: Say = lambda text: None) -> Speed:
    """`seconds` for each part, warm-up not counted."""
    found = Speed(config.environment.id, bare(config, seconds))
    say(f"bare emulator         {found.bare_before:10,.0f} frames/s")
    run = RUNTIMES[config.run.runtime](config)
    processes = len(run.pool.pids) if isinstance(run, LocalRun) else 0
    try:
        found.memory_before = memory()
        found.acting = _acting(run, seconds)
        say(f"acting                {found.acting:10,.0f} frames/s")
        _training(run, seconds, found)
        say(f"training              {found.trained:10,.0f} frames/s")
        found.memory_after = memory()
    finally:
        run.close()
    found.bare_after = bare(config, seconds)
    say(f"bare emulator again   {found.bare_after:10,.0f} frames/s")
    if processes:
        found.bare_alike = bare(config, seconds, processes, config.actor.num_envs)
        shape = f"processes: {processes}, environments: {config.actor.num_envs}"
        say(f"bare, as in training  {found.bare_alike:10,.0f} frames/s  ({shape})")
    return found


def trained_rate(config: Config, seconds: float) -> float:
    """Trained frames per second alone, after a warm-up."""
    run = RUNTIMES[config.run.runtime](config)
    try:
        _warm(run, seconds)
        return rate(run, seconds)
    finally:
        run.close()


def bare(config: Config, seconds: float, workers: int = 0, num_envs: int = 0) -> float:
    """Frames per second; by default of one process per usable core, `BARE_ENVS` environments in each."""
    workers = workers or usable_cores()
    pool = WorkerPool(config.environment, num_envs or workers * BARE_ENVS, workers, groups=1)
    try:
        (group,) = pool.groups
        group.reset(1)
        steps, spent = 8, 0.0
        group.spin(steps)
        while True:
            begun = time.perf_counter()
            group.spin(steps)
            spent = time.perf_counter() - begun
            if spent >= seconds:
                return steps * group.num_envs * pool.spec.frames_per_step / spent
            steps = max(2 * steps, int(1.1 * steps * seconds / max(spent, 1e-3)))
    finally:
        pool.close()


def _acting(run: Run, seconds: float) -> float:
    run.learning = False
    _steps_for(run, min(2.0, seconds))
    return rate(run, seconds)


def _training(run: Run, seconds: float, found: Speed) -> None:
    config, learners = run.experiment.config, run.experiment.learners
    run.learning = True
    _warm(run, seconds)
    run.report()
    if run.experiment.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    updates, busy, begun = learners[0].updates, run.crew.busy, time.perf_counter()
    found.trained = rate(run, seconds)
    spent = time.perf_counter() - begun
    report = run.report()
    found.updates = (learners[0].updates - updates) / spent
    found.learner_busy = (run.crew.busy - busy) / spent / len(learners)
    found.learner_samples = found.trained * len(learners) * config.buffer.replay
    found.policy_lag, found.sample_age = report["policy_lag"], report["sample_age"]
    found.time, found.bytes_per_step = report["time"], run.experiment.buffer.bytes_per_step
    if run.experiment.device.type == "cuda":
        found.device_memory = torch.cuda.max_memory_allocated() / 1e6


def _warm(run: Run, seconds: float) -> None:
    """Kernels, caches and the buffer's first rounds."""
    while run.experiment.learners[0].updates < 5:
        run.step()
    _steps_for(run, min(5.0, seconds))


def _steps_for(run: Run, seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        run.step()
    run.settle()


def rate(run: Run, seconds: float) -> float:
    """Frames per second."""
    frames, begun = run.tracker.frames, time.perf_counter()
    _steps_for(run, seconds)
    return (run.tracker.frames - frames) / (time.perf_counter() - begun)


def memory(pid: int = 0) -> float:
    """MB that a process (or this one) and all below it hold, shared pages counted once (Linux; else 0)."""
    total = 0.0
    for each in process_tree(pid or os.getpid()):
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1e3


def process_tree(pid: int) -> list[int]:
    """This process and all below it (Linux; else itself alone)."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(below for child in children for below in process_tree(int(child)))]
