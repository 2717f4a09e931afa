"""Run directories as a page needs them: finished, archived, or still being written.

A file is read line by line and kept in bounded memory, so that a run of a hundred thousand reports is no
harder than one of a hundred.  Nothing that is read is executed.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lbc.errors import UserError
from lbc.pages.binned import Binned
from lbc.pages.numbers import Report, known, number, records
from lbc.reporting import RunDirectory
from lbc.reporting.curves import Curve
from lbc.reporting.rundir import read_config, read_json, run_directories
from lbc.runtime.clock import PARTS

COLUMNS = ("frames", "seconds", "episodes", "score_mean", "behavior_entropy", "frames_per_second", "updates")
REPORTS = 500  # kept for the diagnostics, and at most twice as many while reading
_LONGEST = 2000  # entries of a list in a report; more is no report of this package


@dataclass(frozen=True)
class Run:
    """What a page shows of one run."""

    path: Path
    game: str
    seed: int | None
    config: Mapping[str, Any]  # as in config.toml, or in the config.json of another program
    summary: Mapping[str, Any]
    columns: Mapping[str, np.ndarray]  # [R] each, NaN where unknown
    chosen: Mapping[str, Binned]  # per dimension of psi: episodes in each region
    responsibility: Binned | None  # share times seconds, per component
    time: Binned | None  # seconds in each of PARTS
    reports: Sequence[Report]  # thinned out

    def curve(self, key: str = "score_mean") -> Curve | None:
        """A column over frames, where both are known."""
        frames, values = self.columns["frames"], self.columns[key]
        there = ~np.isnan(frames) & ~np.isnan(values)
        order = np.argsort(frames[there], kind="stable")
        return Curve(frames[there][order], values[there][order], self.seconds) if there.any() else None

    def most(self, key: str) -> float:
        """The greatest number of a column, which is the last one of what only counts up."""
        values = self.columns[key]
        return float(values[~np.isnan(values)].max(initial=0.0))

    @property
    def scores(self) -> Curve:
        """Of a run that is read, at least one score is known."""
        found = self.curve()
        assert found is not None
        return found

    @property
    def final(self) -> float:
        return self.scores.final

    @property
    def best(self) -> float:
        return float(self.scores.scores.max())

    @property
    def seconds(self) -> float:
        return self.most("seconds")

    @property
    def outcome(self) -> str:
        """``finished``, ``interrupted`` and so on; a run without a summary is writing, or was killed."""
        return str(self.summary.get("outcome") or "no summary yet")


def find_runs(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """The runs in `paths`, and a sentence about each that was left out.

    A path that is a run itself must be a readable one; in a folder of runs, others are left out.
    """
    runs: dict[Path, Run] = {}
    left_out: list[str] = []
    for path in paths:
        if not path.is_dir():
            raise UserError(f"'{path}' is no directory; give run directories, or folders of them.")
        found = list(run_directories(path))
        if found == [path] or _is_run(path):
            runs.setdefault(path.resolve(), read_run(path))
            continue
        if not found:
            raise UserError(f"'{path}' holds no run; `lbc train ... --out DIR` makes one.")
        for directory in found:
            try:
                runs.setdefault(directory.resolve(), read_run(directory))
            except UserError as error:
                left_out.append(str(error))
    if not runs:
        raise UserError(left_out[0])
    return list(runs.values()), left_out


def read_run(path: Path) -> Run:
    """One run directory, or a sentence about why it cannot be shown."""
    directory = RunDirectory(path)
    config, summary = read_config(directory), read_json(directory.summary)
    columns = {name: array("d") for name in COLUMNS}
    chosen: dict[str, Binned] = {}
    responsibility: list[Binned] = []
    time: list[Binned] = []
    kept: list[Report] = []
    every, count, before = 1, 0, 0.0
    last: Report = {}
    for last in _reports(directory.metrics):
        for name, values in columns.items():
            values.append(number(last.get(name)))
        frames, seconds = columns["frames"][-1], columns["seconds"][-1]
        took = max(seconds - before, 0.0) if seconds == seconds else 0.0
        before = seconds if seconds == seconds else before
        if frames == frames:
            _add_choices(chosen, frames, last)
            _add_vector(responsibility, frames, _vector(last.get("responsibility")) * (took or 1.0))
            _add_vector(time, frames, _times(last.get("time")) * (took or 1.0))
        if count % every == 0:
            kept.append(last)
            if len(kept) > 2 * REPORTS:
                kept, every = kept[::2], 2 * every
        count += 1
    if not count:
        raise UserError(_why_nothing(directory))
    if kept[-1] is not last:
        kept.append(last)
    run = Run(
        path,
        _game(config, summary),
        _seed(config),
        config,
        summary,
        {name: np.array(values) for name, values in columns.items()},
        chosen,
        responsibility[0] if responsibility else None,
        time[0] if time else None,
        kept,
    )
    if run.curve() is None:
        raise UserError(f"'{path}' has no score: no episode has ended yet; wait for its first ones.")
    return run


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in ("config.toml", "metrics.jsonl"))


def _reports(path: Path) -> Iterator[Report]:
    """The objects of a metrics.jsonl that have frames; the last line may be half written."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict) and "frames" in found:
                yield found


def _why_nothing(directory: RunDirectory) -> str:
    if not directory.metrics.exists() or directory.metrics.stat().st_size == 0:
        return f"'{directory.path}' has no reports yet; wait for the first, a few seconds after the start."
    return f"'{directory.metrics}' is damaged: no line of it is a report; give another run directory."


def _game(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    environment = config.get("environment")
    named = environment.get("id") if isinstance(environment, dict) else None
    for name in (named, config.get("env"), summary.get("environment")):
        if isinstance(name, str) and name:
            return name
    return "unknown game"


def _seed(config: Mapping[str, Any]) -> int | None:
    run = config.get("run")
    for seed in (run.get("seed") if isinstance(run, dict) else None, config.get("seed")):
        if isinstance(seed, int) and not isinstance(seed, bool):
            return seed
    return None


def _add_choices(chosen: dict[str, Binned], frames: float, report: Report) -> None:
    for dimension in records(report, "dimensions"):
        counts = _vector(dimension.get("chosen"))
        name = str(dimension.get("name"))
        if counts.size > 1:
            binned = chosen.setdefault(name, Binned(counts.size))
            if binned.size == counts.size:
                binned.add(frames, counts)


def _add_vector(found: list[Binned], frames: float, vector: np.ndarray) -> None:
    if vector.size and not found:
        found.append(Binned(vector.size))
    if vector.size and found[0].size == vector.size:
        found[0].add(frames, vector)


def _vector(value: Any) -> np.ndarray:
    """A list of finite numbers, or nothing."""
    if not isinstance(value, list) or len(value) > _LONGEST or len(known(value)) != len(value):
        return np.zeros(0)
    return np.array(value, dtype=np.float64)


def _times(value: Any) -> np.ndarray:
    return _vector([value.get(part) for part in PARTS]) if isinstance(value, dict) else np.zeros(0)


def machine_of(run: Run) -> dict[str, str]:
    """Where it ran last, as far as it is written down."""
    found = read_json(RunDirectory(run.path).machine)
    return {key: str(value) for key, value in found.items() if value}
