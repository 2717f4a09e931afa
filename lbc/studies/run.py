"""One run of a queue: what it is, how it is started, and what lies in its directory already."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lbc.cards import from_toml, resolve, text_of
from lbc.config import Config
from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.reporting.rundir import read_evaluation, read_json


@dataclass(frozen=True)
class Variant:
    """One curve: a preset with changes, or any command that writes a metrics.jsonl.

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
        return slug(f"{self.task}-{self.label}" if self.task else self.label)


@dataclass(frozen=True)
class Run:
    """One variant with one seed.

    ::

        PATH/...            a run directory like any other
        PATH/log.txt        its output
        PATH/failure.txt    why it failed last, in one sentence
        PATH/eval.json      what `lbc eval` found, where that was wanted
    """

    variant: Variant
    seed: int
    frames: int  # its budget, unless that is in minutes
    path: Path
    minutes: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.variant.folder} seed {self.seed}"

    @property
    def sets(self) -> tuple[str, ...]:
        budget = f"run.minutes={self.minutes!r}" if self.minutes else f"run.frames={self.frames}"
        return (*self.variant.sets, budget)

    def command(self) -> list[str]:
        """That begins it, or goes on with it."""
        if self.variant.command:
            values = {"{seed}": str(self.seed), "{frames}": str(self.frames), "{out}": str(self.path)}
            return [values.get(part, part) for part in self.variant.command]
        if self.resumable():
            return [sys.executable, "-m", "lbc", "train", "--resume", str(self.path)]
        sets = [part for text in self.sets for part in ("--set", text)]
        where = ["--seed", str(self.seed), "--out", str(self.path)]
        return [sys.executable, "-m", "lbc", "train", self.variant.preset, *where, *sets]

    def evaluation_command(self, episodes: int, ways: Sequence[str] = ()) -> list[str]:
        """Whoever trained it trusts the code that it names."""
        how = ["--episodes", str(episodes), "--allow-code", *(["--ways", *ways] if ways else [])]
        return [sys.executable, "-m", "lbc", "eval", str(self.path), *how]

    def config(self) -> Config:
        return resolve(self.variant.preset, self.sets, seed=self.seed)

    def finished(self) -> bool:
        return read_json(RunDirectory(self.path).summary).get("outcome") == "finished"

    def saved(self) -> bool:
        """Whether it has stopped before its end, with a checkpoint."""
        return not self.variant.command and not self.finished() and RunDirectory(self.path).saved()

    def resumable(self) -> bool:
        """Whether a checkpoint of this very run lies there, to go on from."""
        return self.saved() and not self.stale()

    def evaluation(self, episodes: int) -> float | None:
        """Mean score of the favoured behavior, if so many episodes of this very agent were played."""
        run = RunDirectory(self.path)
        found = read_evaluation(run)
        if found is None or found.frames != read_json(run.summary).get("frames"):
            return None
        return found.mean if found.episodes == episodes else None

    @property
    def failure(self) -> Path:
        return self.path / "failure.txt"

    def stale(self) -> str:
        """What the run that lies there did otherwise than it would be done today; empty: nothing."""
        if self.variant.command:
            reports = read_metrics(RunDirectory(self.path).metrics)
            played = reports[-1]["frames"] if reports else 0
            return "" if played >= self.frames else f"it played {played:,} frames, not {self.frames:,}"
        wanted = self.config()
        try:
            found = from_toml(text_of(RunDirectory(self.path).config))
        except (OSError, UserError) as error:
            return f"its config.toml cannot be read today ({error})"
        for section, values in vars(wanted).items():
            for key, value in vars(values).items():
                was = getattr(getattr(found, section), key)
                if was != value:
                    return f"{section}.{key} was {was}, and is {value} today"
        return ""


def slug(text: str) -> str:
    """``text`` as the name of a folder."""
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")
