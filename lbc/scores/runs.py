"""Run directories as columns: seeds of one card and game are one entry, cards are columns."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lbc.cards.toml import parsed, text_of
from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.reporting.curves import Curve
from lbc.reporting.plain import printable
from lbc.scores.reference import Game, find_game, suggestion
from lbc.scores.summary import Column

SCORINGS = ("final", "max")
METRICS = ("score_mean", "eval_score")

_DEPTH = 3  # a suite's folder of cards of games of seeds is taken apart, nothing deeper
# What may differ between two seeds of one card: the game, and how a machine goes about it.
_ANY = {
    "environment": ("id", "threads"),
    "actor": ("workers",),
    "run": (
        *("seed", "reports", "report_seconds", "checkpoint_seconds", "checkpoint_form"),
        *("device", "evaluation_episodes", "learner_processes", "cuda_graphs", "threads"),
    ),
}
_DEFAULT_NAME = re.compile(r"-ALE-\w+?-v\d+-s\d+(-\d{8}-\d{6})?$")


@dataclass(frozen=True)
class Run:
    path: Path
    game: Game
    seed: int
    card: str  # what defines the column: the configuration without game, seed and machine
    label: str
    window: int  # episodes behind a reported score
    curve: Curve

    def score(self, scoring: str) -> float:
        """``final``: the last reported score; ``max``: the highest one, as Agent57 was scored."""
        return float(self.curve.scores[-1] if scoring == "final" else self.curve.scores.max())


def read_runs(paths: Sequence[Path], metric: str = "score_mean") -> list[Run]:
    """The runs in ``paths``, each a run directory or a folder of them."""
    directories: dict[Path, Path] = {}
    for path in paths:
        for directory in runs_in(path):
            directories.setdefault(directory.resolve(), directory)
    runs = [read_run(directory, metric) for directory in directories.values()]
    seen: dict[tuple[str, str, int], Run] = {}
    for run in runs:
        twin = seen.setdefault((run.card, run.game.name, run.seed), run)
        if twin is not run:
            raise UserError(
                f"'{twin.path}' and '{run.path}' are the same card, game and seed; give one of them,"
                " or the interval over seeds would lie."
            )
    return runs


def read_run(path: Path, metric: str = "score_mean") -> Run:
    """One run directory, or a sentence about what it is instead."""
    directory = RunDirectory(path)
    if not directory.config.is_file():
        raise UserError(f"'{path}' is no run directory: it has no config.toml.")
    config = parsed(text_of(directory.config), f"'{directory.config}'")
    environment = _value(config, "environment", "id", str, directory)
    game = find_game(environment)
    if game is None:
        raise UserError(
            f"'{path}' played {environment}, which is not among the 57 Atari games with reference scores."
            + (suggestion(environment) if environment.startswith("ALE/") else "")
        )
    return Run(
        path,
        game,
        _value(config, "run", "seed", int, directory),
        card_of(config),
        printable(label_of(path.resolve())),
        _value(config, "run", "score_window", int, directory),
        _curve(directory, metric),
    )


def columns(runs: Sequence[Run], scoring: str = "final") -> list[Column]:
    """One column per card; its frames are those of its longest run."""
    found = []
    for label, members in by_card(runs).items():
        scores: dict[str, list[float]] = {}
        for run in sorted(members, key=lambda run: (run.game.name, run.seed)):
            scores.setdefault(run.game.name, []).append(run.score(scoring))
        frames = max(float(run.curve.frames[-1]) for run in members)
        found.append(Column(label, frames, {game: np.array(seeds) for game, seeds in scores.items()}))
    return found


def by_card(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Label -> runs of one card, in the order given; equal labels of different cards are numbered."""
    cards: dict[str, list[Run]] = {}
    for run in runs:
        cards.setdefault(run.card, []).append(run)
    labelled: dict[str, list[Run]] = {}
    for members in cards.values():
        label, number = members[0].label, 1
        while label in labelled:
            number += 1
            label = f"{members[0].label} ({number})"
        labelled[label] = members
    return labelled


def runs_in(path: Path) -> list[Path]:
    """The run directories at ``path``: itself, or those in it or one or two folders deeper."""
    if not path.is_dir():
        raise UserError(f"'{path}' is no directory.")
    if (path / "config.toml").exists() or (path / "metrics.jsonl").exists():
        return [path]
    for depth in range(1, _DEPTH + 1):
        found = sorted(config.parent for config in path.glob("*/" * depth + "config.toml"))
        if found:
            return found
    raise UserError(f"'{path}' holds no run.")


def _curve(directory: RunDirectory, metric: str) -> Curve:
    try:
        reports = read_metrics(directory.metrics)
    except (ValueError, RecursionError):  # bytes that are no text; digits or brackets by the thousand
        raise UserError(f"'{directory.metrics}' is damaged: it cannot be read as text with JSON.") from None
    pairs = [
        (number_of(report.get("frames")), number_of(report.get(metric)))
        for report in reports
        if isinstance(report, dict)
    ]
    known = [(frames, score) for frames, score in pairs if frames > 0 and not math.isnan(score)]
    if not known:
        raise UserError(_why_no_score(directory, reports, metric))
    table = np.array(known)
    return Curve(table[:, 0], table[:, 1], 0.0)


def _why_no_score(directory: RunDirectory, reports: Sequence[Any], metric: str) -> str:
    if not directory.metrics.exists():
        return f"'{directory.path}' has no metrics.jsonl: its run has not reported yet."
    if not any(isinstance(report, dict) and "frames" in report for report in reports):
        empty = directory.metrics.stat().st_size == 0
        return (
            f"'{directory.metrics}' is empty: its run has not reported yet."
            if empty
            else f"'{directory.metrics}' is damaged: no line of it is a report."
        )
    if metric == "eval_score":
        return (
            f"'{directory.path}' has no evaluation; leave --metric eval_score out to score training episodes."
        )
    return f"'{directory.path}' has no score: no episode has ended yet."


def number_of(value: Any) -> float:
    """A finite number as such, anything else as NaN."""
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _value(config: Mapping[str, Any], section: str, key: str, kind: type, directory: RunDirectory) -> Any:
    table = config.get(section)
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UserError(f"'{directory.config}' is no configuration of a run: {section}.{key} is missing.")
    return value


def card_of(config: Mapping[str, Any]) -> str:
    kept = {
        section: {key: value for key, value in table.items() if key not in _ANY.get(section, ())}
        for section, table in config.items()
        if isinstance(table, dict)
    }
    return json.dumps(kept, sort_keys=True, default=str)


def label_of(path: Path) -> str:
    """The card's name as far as the path tells it: ``atari-fast`` of ``atari-fast-ALE-Pong-v5-s3``.

    Runs that a study keeps lie in ``<label>/seed<k>`` or ``<label>/<game>/seed<k>``; the first line of a
    ``label.txt`` there is the label in words.
    """
    if not re.fullmatch(r"seed\d+", path.name):
        return _DEFAULT_NAME.sub("", path.name) or path.name
    folder = path.parent.parent if find_game(path.parent.name) else path.parent
    written = folder / "label.txt"
    lines = text_of(written).split("\n") if written.is_file() else []
    return (lines[0].strip() if lines else "") or folder.name
