"""What does each part contribute?  The paper's ablation, on MinAtar Breakout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lbc.reporting.colours import GRID, PALETTE, QUIET, TEXT
from lbc.reporting.curves import FINAL_SHARE, interval, interval_name
from lbc.studies.figures import compare_panels, plain_axes, table
from lbc.studies.findings import Finals, compared, two_digits
from lbc.studies.plan import Study, Variant
from lbc.studies.presentation import Canvas, Panels, Shown, finals


def study() -> Study:
    return Study(
        "ablation",
        "What does each part of LBC-BM contribute?",
        tuple(
            Variant(label, f"minatar{overlay}", task="MinAtar Breakout")
            for label, overlay in (
                ("main", ""),
                ("reduced H", "+reduced-h"),
                ("reduced H and Psi", "+reduced-h-psi"),
                ("random selection", "+random-selection"),
                ("no UCB", "+no-ucb"),
                ("rule-based F", "+rule-based"),
            )
        ),
        frames=200_000,
        present=scaled_to_the_first,
    )


def scaled_to_the_first(panels: Panels, canvas: Canvas) -> Shown:
    """The paper's presentation: final scores in percent of the first variant's, a dot for each seed.

    Where that is not above zero, percent would mean nothing, and scores stay as they are.
    """
    found = {task: scores for task, runs in panels.items() if (scores := finals(runs))}
    units = {task: _unit(scores) for task, scores in found.items()}
    curves, drawn = canvas.beside("curves"), [canvas.png] if found else []
    if found:
        _bars(found, units, canvas)
    titled = {task or canvas.title: runs for task, runs in panels.items()}
    if compare_panels(titled, curves, references=canvas.references, smooth=canvas.smooth):
        drawn.append(curves)
    text = "\n\n".join(
        f"### {task}\n\n{table(runs)}" if task else table(runs) for task, runs in panels.items()
    )
    return Shown(text, _findings(found, units), _rows(panels, units), drawn)


def _unit(scores: Finals) -> float | None:
    """What counts as 1%; None: scores stay as they are."""
    mean = float(next(iter(scores.values())).mean())
    return mean / 100.0 if mean > 0 else None


def _findings(found: dict[str, Finals], units: dict[str, float | None]) -> str:
    paragraphs = []
    for task, scores in found.items():
        unit, first = units[task], next(iter(scores))
        scaled = {label: values / (unit or 1.0) for label, values in scores.items()}
        words = compared(first, scaled, (lambda x: f"{x:.0f}%") if unit else two_digits)
        basis = (
            f"in percent of {first}'s mean"
            if unit
            else f"as they are, since {first}'s mean is not above zero"
        )
        head = f"{task}: final" if task else "Final"
        paragraphs.append(
            f"{head} scores (mean of the last {FINAL_SHARE:.0%} of the frames) {basis}, with the interval of"
            f" the seeds. {words}"
        )
    return "\n\n".join(paragraphs)


def _rows(panels: Panels, units: dict[str, float | None]) -> list[dict[str, Any]]:
    rows = []
    for task, runs in panels.items():
        for label, paths in runs.items():
            for path in paths:
                for score in finals({label: [path]}).get(label, ()):
                    percent = score / unit if (unit := units.get(task)) else None
                    rows.append(
                        {"task": task, "variant": label, "run": Path(path).name, "final_score": float(score)}
                        | {"percent_of_first": None if percent is None else float(percent)}
                    )
    return rows


def _bars(found: dict[str, Finals], units: dict[str, float | None], canvas: Canvas) -> None:
    from matplotlib.figure import Figure

    widest = max(len(scores) for scores in found.values())
    figure = Figure(figsize=(2.2 + 1.25 * widest * len(found), 4.4), layout="constrained")
    for axes, (task, scores) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        unit = units[task]
        for place, values in enumerate(scores.values()):
            scaled = values / (unit or 1.0)
            _bar(axes, place, scaled, PALETTE[0] if place == 0 else PALETTE[4])
        axes.axhline(100.0 if unit else 0.0, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=2.5)
        axes.set_xticks(range(len(scores)), [label.replace(" ", "\n", 1) for label in scores])
        axes.set_ylabel(f"final score, % of {next(iter(scores))}" if unit else "final score", color=TEXT)
        axes.set_title(task or canvas.title, loc="left", color=TEXT, fontsize=12, fontweight="bold")
        axes.grid(True, axis="y", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        plain_axes(axes)
    counts = sorted({len(values) for scores in found.values() for values in scores.values()})
    names = dict.fromkeys(interval_name(count) for count in counts if count > 1)
    words = f"Bar: mean of {' to '.join(map(str, sorted({counts[0], counts[-1]})))} seeds; dot: one seed"
    words += f"; line: {' or '.join(names)}." if names else "."
    figure.supxlabel(words, x=0.01, ha="left", color=QUIET, fontsize=8.5)
    figure.savefig(canvas.png, dpi=130)


def _bar(axes: Any, place: int, values: np.ndarray, colour: str) -> None:
    axes.bar(place, values.mean(), width=0.62, color=colour, zorder=2)
    if len(values) > 1:
        axes.vlines(place, *interval(values), color=TEXT, linewidth=1.2, zorder=3)
    aside = np.linspace(-0.13, 0.13, len(values)) if len(values) > 1 else np.zeros(1)
    axes.scatter(place + aside, values, s=26, color=TEXT, edgecolor="white", linewidth=0.8, zorder=4)
