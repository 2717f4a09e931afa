"""Runs of any task as one table: what was reached, beside people and the paper, and what it took.

Seeds of one task and label are one row: runs in ``<folder>/seed<k>``, or of one configuration.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.reporting.plain import printable
from lbc.reporting.rundir import Evaluated, read_config, read_evaluation, read_json, run_directories
from lbc.scores.reference import Game, find_game, published
from lbc.scores.runs import card_of, label_of, number_of
from lbc.scores.tables import Cell, Heading, Table, short

MOST_SEEDS = 5  # that are told one by one


@dataclass(frozen=True)
class Result:
    """One run, as its directory tells it."""

    path: Path
    task: str
    label: str
    group: str  # what other seeds share
    game: Game | None  # with references
    score: float  # as last reported
    best: float | None  # episode
    evaluation: Evaluated | None
    frames: int
    seconds: float  # NaN where nobody took the time
    human: tuple[float, float] | None  # frames and seconds until a report was at a person's score


def results(paths: Iterable[Path]) -> list[Result]:
    """All runs at or below `paths`, in their order."""
    found: dict[Path, Result] = {}
    for path in paths:
        if not path.is_dir():
            raise UserError(f"'{path}' is no directory.")
        inside = list(run_directories(path))
        if not inside:
            raise UserError(f"'{path}' holds no run.")
        for directory in inside:
            found.setdefault(directory.resolve(), read_result(directory))
    return list(found.values())


def read_result(path: Path) -> Result:
    run = RunDirectory(path)
    config = read_config(run)
    task = _task(config)
    if task is None:
        raise UserError(f"'{path}' does not say what it played: it has no configuration.")
    told = ("frames", "score_mean")
    reports = [
        report
        for report in read_metrics(run.metrics)
        if not any(math.isnan(number_of(report.get(key))) for key in told)
    ]
    if not reports:
        raise UserError(f"'{path}' has no score: no episode has ended yet.")
    last, game = reports[-1], find_game(task)
    seed = re.fullmatch(r"seed\d+", path.name)
    return Result(
        path=path,
        task=printable(task),
        label=printable(label_of(path.resolve())),
        group=str(path.resolve().parent) if seed else card_of(config),
        game=game,
        score=float(last["score_mean"]),
        best=_best(run, reports),
        evaluation=read_evaluation(run),
        frames=int(last["frames"]),
        seconds=number_of(last.get("seconds")),
        human=None if game is None else _reached(reports, game.human, _window(config)),
    )


def results_table(runs: Sequence[Result], root: Path = Path()) -> Table:
    """`root`: where the paths of the last column begin."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for run in runs:
        groups.setdefault((run.task, run.label, run.group), []).append(run)
    lbc = published("lbc_bm")
    rows = [_row(members, lbc, root) for members in groups.values()]
    kept = [i for i in range(len(_HEADINGS)) if i < 3 or any(row[i] is not None for row in rows)]
    return Table(
        "Runs",
        tuple(_HEADINGS[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in rows),
        (
            "Score: the last reported mean over training episodes, exploration included; mean over seeds, in "
            "brackets each seed. Frames and minutes: of the longest seed. Human level: of a mean over as "
            "many episodes as the run reports on (100 at full size).",
        ),
    )


_HEADINGS = (
    Heading("task"),
    Heading("agent"),
    Heading("score", " "),
    Heading("evaluation", " "),
    Heading("best episode", ",.6g"),
    Heading("human", ",.6g"),
    Heading("world record", ",.8g"),
    Heading("LBC in the paper (1B frames)", ",.8g"),
    Heading("frames", " "),
    Heading("minutes", ",.1f"),
    Heading("human level after", " "),
    Heading("files"),
)


def _row(seeds: Sequence[Result], lbc: Mapping[str, float], root: Path) -> tuple[Cell, ...]:
    first, game = seeds[0], seeds[0].game
    times = [run.seconds for run in seeds if not math.isnan(run.seconds)]
    bests = [run.best for run in seeds if run.best is not None]
    return (
        first.task if game is None else game.name,
        first.label,
        _each([run.score for run in seeds]),
        _evaluated(seeds),
        max(bests) if bests else None,
        game.human if game else None,
        game.record if game else None,
        lbc.get(game.name) if game else None,
        short(max(run.frames for run in seeds)),
        max(times) / 60.0 if times else None,
        _when([run.human for run in seeds]) if game else None,
        Path(os.path.relpath(first.path.parent if len(seeds) > 1 else first.path, root)).as_posix(),
    )


def _each(scores: Sequence[float]) -> str:
    mean = _rounded(sum(scores) / len(scores))
    told = 1 < len(scores) <= MOST_SEEDS
    return f"{mean} ({', '.join(map(_rounded, scores))})" if told else mean


def _evaluated(seeds: Sequence[Result]) -> str | None:
    """With the age of the agent that played, where the run has gone on without an evaluation since."""
    found = [(run.evaluation, run.frames) for run in seeds if run.evaluation is not None]
    if not found:
        return None
    earlier = [short(one.frames) for one, frames in found if one.frames < frames]
    at = f", at {', '.join(earlier)}" if earlier else ""
    return f"{_each([one.mean for one, _ in found])}, {found[0][0].episodes} episodes{at}"


def _when(found: Sequence[tuple[float, float] | None]) -> str | None:
    """Of the seeds that got there, the slowest; how many did, unless all."""
    there = [when for when in found if when is not None]
    if not there:
        return None
    frames, seconds = max(there, key=lambda when: when[0])
    some = "" if len(there) == len(found) else f" ({len(there)} of {len(found)})"
    return short(frames) + ("" if math.isnan(seconds) else f", {seconds / 60:.1f} min") + some


def _rounded(score: float) -> str:
    return format(score, ",.0f" if abs(score) >= 100 else ".1f" if abs(score) >= 2 else ".2f")


def _task(config: Mapping[str, Any]) -> str | None:
    """Of our configuration, or of another program's that was kept beside it."""
    section = config.get("environment")
    for found in (section.get("id") if isinstance(section, dict) else None, config.get("env")):
        if isinstance(found, str):
            return found
    return None


def _best(run: RunDirectory, reports: Sequence[Mapping[str, Any]]) -> float | None:
    candidates = [read_json(run.summary).get("score_max"), *(report.get("score_max") for report in reports)]
    return max((number for number in map(number_of, candidates) if not math.isnan(number)), default=None)


def _window(config: Mapping[str, Any]) -> int:
    run = config.get("run")
    found = run.get("score_window") if isinstance(run, dict) else None
    return found if isinstance(found, int) else 0


def _reached(
    reports: Sequence[Mapping[str, Any]], height: float, episodes: int
) -> tuple[float, float] | None:
    """The first report at `height`, but not of the few games that end first: they may be the best."""
    for report in reports:
        too_few = number_of(report.get("episodes")) < episodes  # False where nobody counted: NaN
        if report["score_mean"] >= height and not too_few:
            return float(report["frames"]), number_of(report.get("seconds"))
    return None
