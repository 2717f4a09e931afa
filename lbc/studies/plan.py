"""Many runs of one question: variants x seeds.

::

    OUT/<study>/<variant>/seed<k>/      a run directory like any other, and the run's output in log.txt

A finished run is never repeated, an unfinished one goes on from its checkpoint; so a study that was
interrupted goes on where it stopped, and one that has finished only draws its figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lbc.cards import resolve
from lbc.errors import UserError, nearest
from lbc.studies.presentation import Panels, Presentation, learning_curves
from lbc.studies.run import Run, Variant

__all__ = ["Run", "Study", "Variant", "missing", "panels_of", "plan"]

ONE_CORE = ("run.threads=1", "environment.threads=1")  # a run's share: several of them fill the machine


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


def plan(study: Study, seeds: Iterable[int], out: Path, frames: int | None = None) -> list[Run]:
    """All runs of a study, seed by seed, so that the first figure shows every variant.

    Raises a ``UserError`` for a variant that cannot be run, before anything has been started.
    """
    runs = []
    frames = study.frames if frames is None else frames
    for seed in seeds:
        for variant in study.variants:
            budget, minutes = frames, 0.0
            if variant.preset:
                variant = replace(variant, sets=(*ONE_CORE, *variant.sets))
                found = resolve(variant.preset, variant.sets, frames=frames).run
                budget, minutes = found.frames, found.minutes
            if budget is None:
                raise UserError(f"'{variant.label}' is a command; give its budget with --frames.")
            path = out / study.name / variant.folder / f"seed{seed}"
            runs.append(Run(variant, seed, budget, path, minutes))
    return runs


def missing(runs: Sequence[Run], stale: str = "refuse") -> list[Run]:
    """The runs that are still to be done; those that failed last time come last.

    ``stale`` says what becomes of a run with a checkpoint whose configuration is not today's (a card has
    changed): ``refuse`` ends with a sentence, ``keep`` leaves it as it is, ``rerun`` does it again.
    """
    todo = []
    for run in runs:
        finished = run.finished()
        difference = run.stale() if finished or run.saved() else ""
        if difference and stale == "refuse":
            raise UserError(
                f"'{run.path}' has {'finished' if finished else 'begun'}, but {difference}; choose another"
                " --out, or say --stale keep or --stale rerun."
            )
        if stale == "rerun" if difference else not finished:
            todo.append(run)
    return sorted(todo, key=lambda run: run.failure.exists())


def panels_of(runs: Sequence[Run]) -> Panels:
    """Task -> label -> directories of the runs that have finished."""
    panels: dict[str, dict[str, list[Path]]] = {}
    for run in runs:
        if run.finished():
            panels.setdefault(run.variant.task, {}).setdefault(run.variant.label, []).append(run.path)
    return panels
