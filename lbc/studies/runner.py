"""Many runs of one question: variants x seeds, each in a process of its own, several at a time.

::

    OUT/<study>/<variant>/seed<k>/      a run directory like any other, and the run's output in log.txt

A finished run is never repeated, an unfinished one is removed and run again; so a study that was
interrupted goes on where it stopped, and one that has finished only draws its figure.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from lbc.cards import from_toml, resolve
from lbc.config import Config
from lbc.environments.cores import usable_cores
from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.studies.display import make_display

ONE_CORE = ("run.threads=1", "environment.threads=1")  # a run's share: `jobs` of them fill the machine
_POLL_SECONDS = 0.5
_GRACE_SECONDS = 20.0  # for a run to write its last checkpoint and summary after a signal


@dataclass(frozen=True)
class Variant:
    """One curve of a study: a preset with changes, or any command that writes a metrics.jsonl.

    Arguments ``{seed}``, ``{frames}`` and ``{out}`` of ``command`` are filled in; it has finished when it
    exits with 0.
    """

    label: str
    preset: str = ""
    sets: tuple[str, ...] = ()
    task: str = ""  # variants of one task share a panel
    command: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return _slug(f"{self.task}-{self.label}" if self.task else self.label)


@dataclass(frozen=True)
class Study:
    """A question, and the variants that answer it together."""

    name: str
    question: str
    variants: tuple[Variant, ...]
    seeds: int = 3
    frames: int | None = None  # budget of every run; None: its card's
    references: tuple[tuple[str, float], ...] = ()  # lines in the figure: (text, score)

    def __post_init__(self) -> None:
        folders = [variant.folder for variant in self.variants]
        assert len(set(folders)) == len(folders), f"two variants of '{self.name}' share a folder"

    def only(self, labels: Sequence[str] = (), tasks: Sequence[str] = ()) -> Study:
        """The same study with the variants of these labels on these tasks; none named: all."""
        for kind, wanted, known in (
            ("variant", labels, dict.fromkeys(variant.label for variant in self.variants)),
            ("task", tasks, dict.fromkeys(variant.task for variant in self.variants)),
        ):
            for name in wanted:
                if name not in known:
                    raise UserError(f"Study '{self.name}' has no {kind} '{name}'; it has {', '.join(known)}.")
        chosen = (
            v for v in self.variants if (not labels or v.label in labels) and (not tasks or v.task in tasks)
        )
        return replace(self, variants=tuple(chosen))


@dataclass(frozen=True)
class Run:
    """One variant with one seed."""

    variant: Variant
    seed: int
    frames: int
    path: Path

    @property
    def name(self) -> str:
        return f"{self.variant.folder} seed {self.seed}"

    def command(self) -> list[str]:
        if self.variant.command:
            values = {"{seed}": str(self.seed), "{frames}": str(self.frames), "{out}": str(self.path)}
            return [values.get(part, part) for part in self.variant.command]
        sets = [part for text in (*ONE_CORE, *self.variant.sets) for part in ("--set", text)]
        budget = ["--seed", str(self.seed), "--frames", str(self.frames), "--out", str(self.path)]
        return [sys.executable, "-m", "lbc", "train", self.variant.preset, *budget, *sets]

    def finished(self) -> bool:
        return _read_json(RunDirectory(self.path).summary).get("outcome") == "finished"

    def stale(self) -> str:
        """What this finished run did otherwise than it would be done today; empty: nothing."""
        if self.variant.command:
            reports = read_metrics(RunDirectory(self.path).metrics)
            played = reports[-1]["frames"] if reports else 0
            return "" if played >= self.frames else f"it played {played:,} frames, not {self.frames:,}"
        wanted = self.config()
        try:
            found = from_toml(RunDirectory(self.path).config.read_text(encoding="utf-8"))
        except (OSError, UserError) as error:
            return f"its config.toml cannot be read today ({error})"
        for section, values in vars(wanted).items():
            for key, value in vars(values).items():
                was = getattr(getattr(found, section), key)
                if was != value:
                    return f"{section}.{key} was {was}, and is {value} today"
        return ""

    def config(self) -> Config:
        sets = (*ONE_CORE, *self.variant.sets)
        return resolve(self.variant.preset, sets, seed=self.seed, frames=self.frames)


def plan(study: Study, seeds: Iterable[int], out: Path, frames: int | None = None) -> list[Run]:
    """All runs of a study, seed by seed, so that the first figure shows every variant.

    Raises a ``UserError`` for a variant that cannot be run, before anything has been started.
    """
    runs = []
    frames = study.frames if frames is None else frames
    for seed in seeds:
        for variant in study.variants:
            budget = frames
            if variant.preset:
                budget = resolve(variant.preset, variant.sets, frames=frames).run.frames
            if budget is None:
                raise UserError(f"'{variant.label}' is a command; give its budget with --frames.")
            runs.append(Run(variant, seed, budget, out / study.name / variant.folder / f"seed{seed}"))
    return runs


def missing(runs: Sequence[Run], stale: str = "refuse") -> list[Run]:
    """The runs that are still to be done.

    ``stale`` says what becomes of a finished run whose configuration is not today's (a card has
    changed): ``refuse`` ends with a sentence, ``keep`` counts it as done, ``rerun`` does it again.
    """
    todo = []
    for run in runs:
        if not run.finished():
            todo.append(run)
            continue
        difference = run.stale() if stale != "keep" else ""
        if difference and stale == "refuse":
            raise UserError(
                f"'{run.path}' has finished, but {difference}; choose another --out, "
                "or say --stale keep or --stale rerun."
            )
        if difference:
            todo.append(run)
    return todo


def execute(runs: Sequence[Run], jobs: int | None = None, stream: TextIO | None = None) -> list[str]:
    """Does all ``runs``, ``jobs`` at a time; returns one sentence for each that failed.

    Ctrl-C and SIGTERM end every run cleanly (each keeps what it has) and raise KeyboardInterrupt.
    """
    waiting, failures = list(runs), list[str]()
    active: dict[Run, subprocess.Popen[bytes]] = {}
    display = make_display(stream or sys.stdout, sum(run.frames for run in runs), len(runs))
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
                done_frames, done_runs = done_frames + run.frames, done_runs + 1
                failure = _ended(run, code)
                failures += [failure] if failure else []
                display.say(failure or f"{run.name}: {_last_words(run)}")
            played = sum(min(_frames_played(run), run.frames) for run in active)
            display.update(done_frames + played, done_runs, len(active))
    finally:
        _stop(list(active.values()))
        display.stop()
        signal.signal(signal.SIGTERM, previous)
    return failures


def _start(run: Run) -> subprocess.Popen[bytes]:
    shutil.rmtree(run.path, ignore_errors=True)
    run.path.mkdir(parents=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with (run.path / "log.txt").open("wb") as log:
        return subprocess.Popen(
            run.command(),
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


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")
