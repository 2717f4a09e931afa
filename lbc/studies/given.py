"""Run directories that somebody else made: which of them are seeds of one variant, and of which game."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbc.cards import from_toml
from lbc.cards.toml import text_of
from lbc.config import Config
from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.reporting.plain import printable
from lbc.scores.runs import runs_in
from lbc.studies.presentation import Panels

# Of a report, as far as studies draw them.
_NUMBERS = ("seconds", "score_mean", "behavior_entropy", "kl_between_components", "kl_between_softmax")
_SEED = re.compile(r"-s\d+(-\d{8}-\d{6})?$")


def panels_given(paths: Sequence[Path]) -> Panels:
    """Game -> label -> directories.  Each of ``paths`` is a run directory or a folder of them.

    Runs of one game whose configurations differ in nothing but the seed are one variant.
    """
    directories = {directory.resolve(): directory for path in paths for directory in runs_in(path)}
    variants: dict[tuple[str, Config], list[Path]] = {}
    for directory in directories.values():
        config = config_of(directory)
        _require_reports(directory)
        variants.setdefault((config.environment.id, _without_seed(config)), []).append(directory)
    panels: dict[str, dict[str, list[Path]]] = {}
    for (game, _), members in variants.items():
        panel = panels.setdefault(game, {})
        panel[_unlike(_label(members[0]), panel)] = members
    return panels


def _require_reports(directory: Path) -> None:
    """That there are some, and that numbers are numbers: whoever draws them need not ask again."""
    reports = read_metrics(RunDirectory(directory).metrics)
    if not reports:
        raise UserError(f"'{directory}' has no report yet; leave it out, or wait for its first one.")
    for report in reports:
        if not _is_number(report.get("frames")) or not all(
            report.get(key) is None or _is_number(report[key]) for key in _NUMBERS
        ):
            raise UserError(f"'{RunDirectory(directory).metrics}' is damaged: a line of it is no report.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def config_of(directory: Path) -> Config:
    path = RunDirectory(directory).config
    if not path.is_file():
        raise UserError(f"'{directory}' is no run directory: it has no config.toml.")
    try:
        return from_toml(text_of(path))
    except UserError as error:
        raise UserError(f"'{path}' cannot be read today: {error}") from None


def _without_seed(config: Config) -> Config:
    return replace(config, run=replace(config.run, seed=0))


def _label(directory: Path) -> str:
    """Runs of a queue lie in ``<label>/seed<k>``, perhaps with words in ``<label>/label.txt``; the name of
    others ends in their seed, perhaps a date."""
    path = directory.resolve()
    if not re.fullmatch(r"seed\d+", path.name):
        return printable(_SEED.sub("", path.name))
    words = path.parent / "label.txt"
    return printable((text_of(words).strip() if words.is_file() else "") or path.parent.name)


def _unlike(label: str, taken: dict[str, list[Path]]) -> str:
    number, found = 1, label
    while found in taken:
        number += 1
        found = f"{label} ({number})"
    return found
