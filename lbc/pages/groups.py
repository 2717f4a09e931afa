"""Runs in the order of a page: by game, then by configuration; seeds of one configuration are one group."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from lbc.pages.reading import Run
from lbc.reporting.plain import printable
from lbc.scores import Game, find_game

EVEN = 0.9  # of the longest seed's frames: a final score is the mean over the last tenth
_SEED_FOLDER = re.compile(r"seed[-_]?\d+")
_SEED_ENDING = re.compile(r"[-_. ]*(s|seed)?[-_]?\d*$")
_DATE_ENDING = re.compile(r"-\d{8}-\d{6}$")


@dataclass(frozen=True)
class Variant:
    """Runs that differ in nothing but their seed."""

    label: str
    runs: Sequence[Run]

    @property
    def even(self) -> bool:
        """Whether all seeds have come about equally far."""
        frames = [run.most("frames") for run in self.runs]
        return min(frames) >= EVEN * max(frames)

    @property
    def settings(self) -> dict[str, Any]:
        return settings(self.runs[0].config)


@dataclass(frozen=True)
class GamePart:
    """All variants of one game."""

    name: str
    reference: Game | None  # random and human scores, for Atari
    variants: Sequence[Variant]

    @property
    def runs(self) -> list[Run]:
        return [run for variant in self.variants for run in variant.runs]


def by_game(runs: Sequence[Run]) -> tuple[list[GamePart], list[str]]:
    """The parts of a page, and a sentence about each run that is there twice."""
    games: dict[str, dict[str, list[Run]]] = {}
    doubled = []
    for run in runs:
        kept = games.setdefault(run.game, {}).setdefault(_card(run), [])
        twin = next((other for other in kept if other.seed == run.seed and run.seed is not None), None)
        if twin is None:
            kept.append(run)
        else:
            doubled.append(
                f"'{run.path}' has the configuration and the seed of '{twin.path}'; it is left out,"
                " or the interval over seeds would lie."
            )
    return [
        GamePart(game, find_game(game), _labelled(cards)) for game, cards in sorted(games.items())
    ], doubled


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """``section.key`` -> value, without the seed."""
    found: dict[str, Any] = {}
    for section, table in config.items():
        entries = (
            {f"{section}.{key}": value for key, value in table.items()} if isinstance(table, dict) else {}
        )
        found |= entries or {str(section): table}
    return {key: value for key, value in found.items() if key not in ("run.seed", "seed")}


def differences(variants: Sequence[Variant]) -> list[str]:
    """Settings that are not the same in all variants of this package; other programs have other settings."""
    everyone = [variant.settings for variant in variants if "run" in variant.runs[0].config]
    keys = dict.fromkeys(key for found in everyone for key in found)
    missing = object()
    return [key for key in keys if len({repr(found.get(key, missing)) for found in everyone}) > 1]


def _card(run: Run) -> str:
    return (
        json.dumps(settings(run.config), sort_keys=True, default=str) if run.config else str(run.path.parent)
    )


def _labelled(cards: Mapping[str, list[Run]]) -> list[Variant]:
    """Where two configurations have one name, that of the folder around them comes first, or a number."""
    groups = [sorted(runs, key=lambda run: (run.seed is None, run.seed or 0)) for runs in cards.values()]
    plain = [_label([run.path for run in runs]) for runs in groups]
    variants: dict[str, Variant] = {}
    for label, runs in zip(plain, groups, strict=True):
        folder = runs[0].path.resolve().parents[1 if _SEED_FOLDER.fullmatch(runs[0].path.name) else 0].name
        long = label if plain.count(label) == 1 else f"{printable(folder)}: {label}"
        unique, number = long, 1
        while unique in variants:
            number += 1
            unique = f"{long} ({number})"
        variants[unique] = Variant(unique, runs)
    return list(variants.values())


def _label(paths: Sequence[Path]) -> str:
    """A study keeps ``<label>/seed<k>``, with words in ``<label>/label.txt``; otherwise what names share."""
    names = [path.resolve().name for path in paths]
    if _SEED_FOLDER.fullmatch(names[0]):
        folder = paths[0].resolve().parent
        return printable(_first_line(folder / "label.txt") or folder.name)
    if len(names) == 1:
        return printable(_DATE_ENDING.sub("", names[0]))
    return printable(_SEED_ENDING.sub("", _shared(names)) or names[0])


def _shared(names: Sequence[str]) -> str:
    """How all names begin."""
    pairs = zip(min(names), max(names), strict=False)
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().partition("\n")[0][:100]
    except OSError:
        return ""
