"""Games x cards x seeds as one queue in one folder.

::

    OUT/suite.toml                      what was asked for
    OUT/<card>/<game>/seed<k>/          a run directory like any other
    OUT/suite.csv, suite.md             one line per run; scores as `lbc scores` computes them

The folder is all that a queue knows: what has finished there is done, what has a checkpoint goes on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lbc.cards import resolve, text_of
from lbc.cards.toml import parsed
from lbc.config import RunConfig
from lbc.errors import UserError, nearest
from lbc.studies.games import find_games, folder_of
from lbc.studies.run import Run, Variant, slug

FILE = "suite.toml"
_HEAD = "# What `lbc suite` was asked for; `lbc suite --out` with this folder goes on.\n\n"
_KINDS: dict[str, type] = {"games": str, "cards": str, "seeds": int, "set": str, "ways": str}  # lists


@dataclass(frozen=True)
class Suite:
    """What was asked for; an empty value has not been said."""

    games: tuple[str, ...] = ()  # words, see `lbc.studies.games`
    cards: tuple[str, ...] = ()  # presets with overlays, or files
    seeds: tuple[int, ...] = ()
    set: tuple[str, ...] = ()
    frames: int = 0  # 0 in both: each card's own budget
    minutes: float = 0.0
    runtime: str = ""
    evaluate: int = 0  # episodes of each run when it has finished; 0: none
    ways: tuple[str, ...] = ()  # in which it plays them; empty: in all

    def over(self, earlier: Suite) -> Suite:
        """What is said here, and what was said `earlier` about all else."""
        said = {name: value for name, value in asdict(self).items() if value}
        kept = asdict(earlier)
        if "frames" in said or "minutes" in said:  # one budget takes the place of the other
            kept |= {"frames": 0, "minutes": 0.0}
        return Suite(**(kept | said))

    def plan(self, out: Path) -> list[Run]:
        """Seed by seed across all games, so that the part that is done is balanced at any time.

        Raises a ``UserError`` for what cannot be run, before anything has been started.
        """
        if not self.games or not self.cards:
            raise UserError(
                f"'{out}' holds no suite yet; say which games and cards, as in"
                " --games atari5 --cards atari-fast."
            )
        games = find_games(self.games)
        budgets = {card: self._budget(card, games[0]) for card in self.cards}
        runs = [
            self._run(out, card, game, seed, budget)
            for seed in dict.fromkeys(self.seeds or (1,))
            for game in games
            for card, budget in budgets.items()
        ]
        if len({run.path for run in runs}) < len(runs):
            raise UserError("two of the cards or games have the same name, and would share a folder.")
        return runs

    def _budget(self, card: str, game: str) -> RunConfig:
        """Of every run of this card; also a look whether it can be run at all."""
        options: dict[str, Any] = {"frames": self.frames or None, "minutes": self.minutes or None}
        return resolve(card, self.set, env=game, seed=1, runtime=self.runtime or None, **options).run

    def _run(self, out: Path, card: str, game: str, seed: int, budget: RunConfig) -> Run:
        runtime = (f"run.runtime={self.runtime}",) if self.runtime else ()
        sets = (f"environment.id={game}", *runtime, *self.set)
        label, folder = label_of(card), folder_of(game)
        path = out / slug(label) / folder / f"seed{seed}"
        return Run(Variant(label, card, sets, folder), seed, budget.frames, path, budget.minutes)

    def write(self, out: Path, runs: Sequence[Run]) -> None:
        """What was asked for, and the cards' names in words, for all who read run directories."""
        for run in runs:
            for folder in (run.path.parent, run.path.parents[1]):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "label.txt").write_text(run.variant.label + "\n", encoding="utf-8")
        said = {name: value for name, value in asdict(self).items() if value}
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in said.items()]
        (out / FILE).write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")


def read(out: Path) -> Suite:
    """The suite in ``out``; an empty one where there is none yet."""
    path = out / FILE
    if not path.is_file():
        return Suite()
    found, known = parsed(text_of(path), f"'{path}'"), {field.name: field for field in fields(Suite)}
    for name, value in found.items():
        if name not in known:
            raise UserError(f"'{path}' says '{name}', which means nothing here.{nearest(name, known)}")
        wanted = type(known[name].default)
        if name in _KINDS:
            fits = isinstance(value, list) and all(type(one) is _KINDS[name] for one in value)
        else:
            fits = type(value) is wanted or (wanted is float and type(value) is int)
        if not fits:
            raise UserError(f"'{path}' says {name} = {value!r}, which is no {_meant(name)}.")
    said: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in found.items()}
    return Suite(**said)


def absolute(card: str) -> str:
    """A card that is a file is found from any folder."""
    parts = [str(Path(part).absolute()) if part.endswith(".toml") else part for part in card.split("+")]
    return "+".join(parts) if sum(part.count("+") for part in parts) == 0 else card


def label_of(card: str) -> str:
    """``fast`` of ``my/fast.toml``, ``x`` of ``runs/x/config.toml``; other names as they are."""
    parts = []
    for part in card.split("+"):
        path = Path(part.strip())
        named = path.absolute().parent.name if path.name == "config.toml" else path.stem
        parts.append(named if path.suffix == ".toml" else part.strip())
    return "+".join(parts)


def _meant(name: str) -> str:
    if name in _KINDS:
        return "list of whole numbers" if _KINDS[name] is int else "list of words"
    return {"frames": "whole number", "evaluate": "whole number", "minutes": "number"}.get(name, "word")
