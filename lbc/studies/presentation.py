"""What a study makes of its run directories: figures, numbers, and a paragraph of findings."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lbc.reporting.curves import load, load_all
from lbc.studies.figures import Runs, compare_panels, table
from lbc.studies.findings import Finals, best, compared

Panels = Mapping[str, Runs]  # task -> label -> run directories, one per seed


@dataclass(frozen=True)
class Canvas:
    """Where and how to draw."""

    png: Path
    title: str = ""
    references: Mapping[str, float] = field(default_factory=dict)
    smooth: int = 1  # reports in a running mean

    def beside(self, suffix: str) -> Path:
        """Another figure next to the first."""
        return self.png.with_name(f"{self.png.stem}_{suffix}{self.png.suffix}")


@dataclass(frozen=True)
class Shown:
    table: str  # Markdown
    findings: str  # made from the numbers
    rows: list[dict[str, Any]]  # the numbers, for a CSV
    figures: list[Path]


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """As CSV, with their keys above."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


Presentation = Callable[[Panels, Canvas], Shown]


def learning_curves(panels: Panels, canvas: Canvas) -> Shown:
    """Score over frames, one panel per task."""
    text = "\n\n".join(
        f"### {task}\n\n{table(runs)}" if task else table(runs) for task, runs in panels.items()
    )
    findings = []
    for task, runs in panels.items():
        scores = finals(runs)
        if scores:
            words = compared(best(scores), scores)
            findings.append(f"{task}. The highest final score is that of {words}" if task else words)
    titled = {task or canvas.title: runs for task, runs in panels.items()}
    drawn = compare_panels(titled, canvas.png, references=canvas.references, smooth=canvas.smooth)
    rows = curve_rows(panels, {"score": "score_mean"})
    return Shown(text, "\n\n".join(findings), rows, [canvas.png] if drawn else [])


def finals(runs: Runs, key: str = "score_mean") -> Finals:
    """Label -> each seed's mean over the last tenth of its frames; labels without a curve are left out."""
    found = {label: np.array([c.final for c in load_all(paths, key)]) for label, paths in runs.items()}
    return {label: values for label, values in found.items() if len(values)}


def curve_rows(panels: Panels, keys: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every report that a figure shows; keys: column -> name in metrics.jsonl."""
    rows = []
    for task, runs in panels.items():
        for label, paths in runs.items():
            for path in paths:
                curves = {column: load(path, key) for column, key in keys.items()}
                known = {column: curve for column, curve in curves.items() if curve is not None}
                lines: dict[float, dict[str, Any]] = {}
                for column, curve in known.items():
                    for frames, value in zip(curve.frames, curve.scores, strict=True):
                        lines.setdefault(frames, {})[column] = float(value)
                head = {"task": task, "variant": label, "run": path.name}
                rows += [
                    head | {"frames": int(frames)} | {column: lines[frames].get(column) for column in keys}
                    for frames in sorted(lines)
                ]
    return rows
