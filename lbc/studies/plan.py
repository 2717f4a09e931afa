"""Many runs of one question: variants x seeds.

::

    OUT/<study>/<variant>/seed<k>/      a run directory like any other, and the run's output in log.txt

A finished run is never repeated, an unfinished one goes on from its checkpoint; so a study that was
interrupted goes on where it stopped, and one that has finished only draws its figure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lbc.cards import from_toml, resolve, text_of
from lbc.config import Config
from lbc.errors import UserError, nearest
from lbc.reporting import RunDirectory, read_metrics
from lbc.reporting.rundir import read_json
from lbc.studies.presentation import Panels, Presentation, learning_curves

ONE_CORE = ("run.threads=1", "environment.threads=1")  # a run's share: several of them fill the machine


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
    present: Presentation = learning_curves  # from run directories to figures, numbers and findings
    needs: tuple[tuple[str, str], ...] = (("matplotlib", "matplotlib"),)  # packages, and their modules

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
                    raise UserError(
                        f"study '{self.name}' has no {kind} '{name}'; it has {', '.join(known)}."
                        + nearest(name, known)
                    )
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
        if self.resumable():
            return [sys.executable, "-m", "lbc", "train", "--resume", str(self.path)]
        sets = [part for text in (*ONE_CORE, *self.variant.sets) for part in ("--set", text)]
        budget = ["--seed", str(self.seed), "--frames", str(self.frames), "--out", str(self.path)]
        return [sys.executable, "-m", "lbc", "train", self.variant.preset, *budget, *sets]

    def finished(self) -> bool:
        return read_json(RunDirectory(self.path).summary).get("outcome") == "finished"

    def resumable(self) -> bool:
        """Whether a checkpoint of this very run lies there, to go on from."""
        saved = not self.variant.command and not self.finished() and RunDirectory(self.path).saved()
        return saved and not self.stale()

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


def panels_of(runs: Sequence[Run]) -> Panels:
    """Task -> label -> directories of the runs that have finished."""
    panels: dict[str, dict[str, list[Path]]] = {}
    for run in runs:
        if run.finished():
            panels.setdefault(run.variant.task, {}).setdefault(run.variant.label, []).append(run.path)
    return panels


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")
