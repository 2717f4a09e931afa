"""A study from its first run to its last sentence: do what is missing, draw, write, print."""

from __future__ import annotations

import glob
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lbc.errors import UserError, missing_extra
from lbc.studies.plan import Run, Study, missing, panels_of
from lbc.studies.presentation import Canvas, Panels, Shown, write_rows
from lbc.studies.runner import alone_in, execute


def conduct(
    study: Study,
    runs: Sequence[Run],
    figure: Path | None = None,
    jobs: int | None = None,
    stale: str = "refuse",
    smooth: int = 5,
    also: Sequence[str] = (),
    draw: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Does the missing ones of ``runs`` (none with ``draw``), then shows those that have finished."""
    _check(study, figure)
    extra = [_extra(text) for text in also]
    todo = missing(runs, stale)
    print(f"{study.name}: {study.question}  {len(runs)} runs, {len(runs) - len(todo)} done already.")
    failures: list[str] = []
    folder = runs[0].path.parents[1]
    if todo and not draw:
        with alone_in(folder):
            failures = execute(todo, jobs, among=runs, should_stop=should_stop)
    for failure in failures:
        print(failure, file=sys.stderr)
    if should_stop():
        print("stopped; the same command goes on.")
        return 1
    panels = {task: dict(panel) for task, panel in panels_of(runs).items()}
    for label, paths in extra:
        for panel in panels.values():
            panel[label] = paths
    absent = sum(not run.finished() for run in runs)
    if not panels and failures:
        return 1
    if not panels:
        raise UserError(f"no run in '{folder}' has finished yet, so there is nothing to draw.")
    note = f"{absent} of {len(runs)} runs are missing or unfinished and left out." if absent else ""
    show(study, panels, folder, figure, smooth, note)
    return 1 if failures else 0


def show(
    study: Study, panels: Panels, folder: Path, figure: Path | None = None, smooth: int = 5, note: str = ""
) -> Shown:
    """Figures, numbers and findings of run directories, written into ``folder`` and printed."""
    _check(study, figure)
    folder.mkdir(parents=True, exist_ok=True)
    figure = figure or folder / f"{study.name}.png"
    figure.parent.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(figure, study.question, dict(study.references), smooth)
    shown = study.present(panels, canvas)
    text = "\n\n".join(part for part in (shown.table, shown.findings, note) if part)
    report, numbers = folder / f"{study.name}.md", folder / f"{study.name}.csv"
    report.write_text(f"# {study.question}\n\n{text}\n", encoding="utf-8")
    if shown.rows:
        write_rows(shown.rows, numbers)
    print(f"\n{text}\n")
    for path in (*shown.figures, *([numbers] if shown.rows else []), report):
        print(f"wrote {path}")
    return shown


def _check(study: Study, figure: Path | None) -> None:
    """Before hours are spent on runs that could not be drawn."""
    for package, module in study.needs:
        if not importlib.util.find_spec(module):
            raise missing_extra(package, "studies")
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UserError(f"--figure is '{figure}', but should end in .png, .svg or .pdf.")


def _extra(text: str) -> tuple[str, list[Path]]:
    label, equals, pattern = text.partition("=")
    if not (equals and label and pattern):
        raise UserError(f"--also takes LABEL=DIRECTORIES, but got '{text}'.")
    folders = [Path(folder) for folder in sorted(glob.glob(pattern))]
    paths = [folder for folder in folders if (folder / "metrics.jsonl").exists()]
    if not paths:
        raise UserError(f"--also '{pattern}' matches no run directory.")
    return label, paths
