"""The runs of a study, each in a process of its own, several at a time."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from lbc.environments.cores import usable_cores
from lbc.reporting import RunDirectory, read_metrics
from lbc.studies.display import make_display
from lbc.studies.plan import Run

_POLL_SECONDS = 0.5
_GRACE_SECONDS = 20.0  # for a run to write its last checkpoint and summary after a signal


def execute(runs: Sequence[Run], jobs: int | None = None, stream: TextIO | None = None) -> list[str]:
    """Does all ``runs``, ``jobs`` at a time; returns one sentence for each that failed.

    Ctrl-C and SIGTERM end every run cleanly (each keeps what it has) and raise KeyboardInterrupt.
    """
    for run in runs:
        _refuse_if_at_work(run)
    waiting, failures = list(runs), list[str]()
    active: dict[Run, subprocess.Popen[bytes]] = {}
    frames_before = {run: _frames_played(run) if run.resumable() else 0 for run in runs}
    to_play = sum(run.frames - frames_before[run] for run in runs)
    display = make_display(stream or sys.stdout, to_play, len(runs))
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    done_frames = done_runs = 0
    try:
        while waiting or active:
            while waiting and len(active) < (jobs or usable_cores()):
                run = waiting.pop(0)
                active[run] = _start(run)
            time.sleep(_POLL_SECONDS)
            for run in [run for run, process in active.items() if process.poll() is not None]:
                code = active.pop(run).returncode
                done_frames, done_runs = done_frames + run.frames - frames_before[run], done_runs + 1
                failure = _ended(run, code)
                failures += [failure] if failure else []
                display.say(failure or f"{run.name}: {_last_words(run)}")
            played = sum(max(0, min(_frames_played(run), run.frames) - frames_before[run]) for run in active)
            display.update(done_frames + played, done_runs, len(active))
    finally:
        _stop(list(active.values()))
        display.stop()
        signal.signal(signal.SIGTERM, previous)
    return failures


def _refuse_if_at_work(run: Run) -> None:
    """Nobody's run is removed, or gone on with, while another process is at it."""
    if run.path.is_dir():
        directory = RunDirectory(run.path)
        directory.lock()
        directory.unlock()


def _start(run: Run) -> subprocess.Popen[bytes]:
    command = run.command()
    if not run.resumable():
        shutil.rmtree(run.path, ignore_errors=True)
        run.path.mkdir(parents=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with (run.path / "log.txt").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # the terminal's Ctrl-C reaches this process alone, which passes it on
        )


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask, wait, insist."""
    for process in processes:
        _send(process, signal.SIGINT)
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            _send(process, signal.SIGKILL)
            process.wait()


def _send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # the whole process group that began with it


def _ended(run: Run, code: int) -> str:
    """Closes the books of a run; a sentence if it failed."""
    directory = RunDirectory(run.path)
    if code == 0 and run.variant.command and not directory.summary.exists():
        last = (read_metrics(directory.metrics) or [{}])[-1]
        directory.finish({"outcome": "finished", **last})
    if code == 0 and run.finished():
        return ""
    log = (run.path / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    words = next((line.strip() for line in reversed(log) if line.strip()), "it said nothing")
    return f"{run.name} failed with exit code {code}: {words}"


def _last_words(run: Run) -> str:
    last = (read_metrics(RunDirectory(run.path).metrics) or [{}])[-1]
    score = last.get("score_mean")
    return f"score {score:,.2f}" if score is not None else "no episode has ended"


def _frames_played(run: Run) -> int:
    """From the last whole line of metrics.jsonl, without reading the rest."""
    try:
        with RunDirectory(run.path).metrics.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 65536))
            lines = file.read().splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["frames"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0
