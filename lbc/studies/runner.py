"""The runs of a queue, each in a process of its own, several at a time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from lbc.environments.cores import usable_cores
from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.studies.display import make_display
from lbc.studies.run import Run
from lbc.studies.state import DONE, EVALUATING, FAILED, RUNNING, WAITING, Watch, word_of

POLL_SECONDS = 0.25
GRACE_SECONDS = 60.0  # for a run to write its last checkpoint and summary after a signal
_PATIENCE = 20.0  # seconds for a run whose queue was killed to end
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """One queue at a time works on ``folder``; two would remove each other's runs."""
    folder.mkdir(parents=True, exist_ok=True)
    claim = RunDirectory(folder)
    try:
        claim.lock()
    except UserError:
        raise UserError(f"another process is at work on the runs in '{folder}'; wait for its end.") from None
    try:
        yield
    finally:
        claim.unlock()


def execute(
    runs: Sequence[Run],
    jobs: int | None = None,
    stream: TextIO | None = None,
    *,
    among: Sequence[Run] = (),
    evaluate: int = 0,
    ways: Sequence[str] = (),
    trained: Sequence[Run] = (),
    cores: str = "one",
    should_stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Does all ``runs``, ``jobs`` at a time; returns one sentence for each that failed.

    among: all runs of the queue, to be shown beside these; by default these.
    evaluate: episodes that each of them plays when it has been trained, as `lbc eval` does; 0: none.
    ways: in which it plays them, by default in all.
    trained: runs that are to be evaluated only.
    cores: a run computes on `one` core, or they are `split` among the runs, or `shared` by all of them.

    When it should stop, and after Ctrl-C, every run ends cleanly and keeps what it has.
    """
    for run in runs:
        _wait_until_free(run)
    jobs = jobs or usable_cores()
    waiting = [*((run, RUNNING) for run in runs), *((run, EVALUATING) for run in trained)]
    owners = _Cores(jobs, cores)
    active: dict[Run, _Job] = {}
    failures = list[str]()
    everybody = list(dict.fromkeys([*among, *runs]))
    watches = {run: Watch(run) for run in everybody}
    words = {run: word_of(run) for run in everybody} | dict.fromkeys(runs, WAITING)
    display = make_display(stream or sys.stdout, jobs)
    try:
        while (waiting or active) and not should_stop():
            while waiting and len(active) < jobs:
                run, word = waiting.pop(0)
                active[run], words[run] = _start(run, word, evaluate, ways, owners), word
            display.update([watches[run].state(words[run]) for run in everybody])
            time.sleep(POLL_SECONDS)
            for run in [run for run, job in active.items() if job.process.poll() is not None]:
                job = active.pop(run)
                owners.give_back(job.share)
                failure = _ended(run, job)
                words[run] = FAILED if failure else DONE
                if failure:
                    failures.append(failure)
                elif evaluate and job.word == RUNNING:
                    waiting.insert(0, (run, EVALUATING))
                display.say(failure or f"{run.name}: {_last_words(run, job, evaluate)}")
    finally:
        try:
            _stop([job.process for job in active.values()])
            words |= {run: word_of(run) for run in active}
            display.update([watches[run].state(words[run]) for run in everybody], last=True)
        finally:
            display.stop()
    return failures


@dataclass(frozen=True)
class _Job:
    word: str  # RUNNING or EVALUATING
    process: subprocess.Popen[bytes]
    share: int  # of the cores


class _Cores:
    """Split among ``count`` runs, each gets its share, where the system can; cards ask how many it is."""

    def __init__(self, count: int, use: str) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        divided = use == "split" and 1 < count <= len(cores)
        self._shares = [set(cores[k::count]) for k in range(count)] if divided else []
        self._free = list(range(len(self._shares)))
        threads = 1 if use == "one" else len(cores) // count if divided else 0
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
        self.environment = {**os.environ, **(dict.fromkeys(names, str(threads)) if threads else {})}

    def give(self, process: subprocess.Popen[bytes]) -> int:
        """To a process that has just begun: all that it will start inherits it."""
        if not self._free:
            return -1
        share = self._free.pop(0)
        with contextlib.suppress(OSError):  # it may have ended already
            os.sched_setaffinity(process.pid, self._shares[share])
        return share

    def give_back(self, share: int) -> None:
        if share >= 0:
            self._free.append(share)


def _wait_until_free(run: Run) -> None:
    """Nobody's run is removed, or gone on with, while another process is at it.

    One whose queue was killed is writing its last checkpoint, so there is some patience.
    """
    deadline = time.monotonic() + (_PATIENCE if run.saved() else 0.0)
    while run.path.is_dir():
        directory = RunDirectory(run.path)
        try:
            directory.lock()
        except UserError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            directory.unlock()
            return


def _start(run: Run, word: str, episodes: int, ways: Sequence[str], cores: _Cores) -> _Job:
    if word == RUNNING:
        command = run.command()
        if not run.resumable():
            shutil.rmtree(run.path, ignore_errors=True)
            run.path.mkdir(parents=True)
    else:
        command = run.evaluation_command(episodes, ways)
    run.failure.unlink(missing_ok=True)
    with (run.path / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=cores.environment,
            start_new_session=True,  # the terminal's Ctrl-C reaches this process alone, which passes it on
            preexec_fn=_end_with_the_queue if _LIBC else None,
        )
    return _Job(word, process, cores.give(process))


def _end_with_the_queue() -> None:
    """In the new process: even where this one is killed, the run ends, cleanly."""
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask, wait, insist."""
    for process in processes:
        _send(process, signal.SIGINT)
    deadline = time.monotonic() + GRACE_SECONDS
    try:
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:  # also where somebody presses Ctrl-C again
        for process in processes:
            _send(process, signal.SIGKILL)
            process.wait()


def _send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # the whole process group that began with it


def _ended(run: Run, job: _Job) -> str:
    """Closes the books of a run or of its evaluation; a sentence if that failed."""
    code, directory = job.process.returncode, RunDirectory(run.path)
    if job.word == EVALUATING and code == 0:
        return ""
    if code == 0 and run.variant.command and not directory.summary.exists():
        last = (read_metrics(directory.metrics) or [{}])[-1]
        directory.finish({"outcome": "finished", **last})
    if code == 0 and run.finished():
        return ""
    log = (run.path / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    words = next((line.strip() for line in reversed(log) if line.strip()), "it said nothing")
    what = run.name if job.word == RUNNING else f"the evaluation of {run.name}"
    how = f"failed with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
    sentence = f"{what} {how}: {words}"
    run.failure.write_text(sentence + "\n", encoding="utf-8")
    return sentence


def _last_words(run: Run, job: _Job, episodes: int) -> str:
    if job.word == EVALUATING:
        return f"evaluated, favourite {run.evaluation(episodes):,.2f}"
    last = (read_metrics(RunDirectory(run.path).metrics) or [{}])[-1]
    score = last.get("score_mean")
    return f"score {score:,.2f}" if score is not None else "no episode has ended"
