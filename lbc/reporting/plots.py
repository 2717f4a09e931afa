"""Pictures of a run, drawn from its metrics.jsonl alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbc.reporting.colours import GRID, PALETTE, TEXT
from lbc.reporting.rundir import read_metrics

_SCORE, _ENTROPY = PALETTE[:2]


def learning_curve(metrics_paths: Path | Sequence[Path], png_path: Path, title: str) -> bool:
    """Draw score and behavior entropy against frames; several runs give thin curves and their mean.

    Returns whether there was anything to draw, and matplotlib to draw it with.
    """
    paths = [metrics_paths] if isinstance(metrics_paths, Path) else list(metrics_paths)
    runs = [reports for reports in map(read_metrics, paths) if len(_column(reports, "score_mean")[0])]
    if not runs or not importlib.util.find_spec("matplotlib"):
        return False
    from matplotlib.figure import Figure  # without pyplot: no global state, no display needed

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    if len(runs) == 1:
        upper.plot(*_column(runs[0], "score_max"), color=_SCORE, alpha=0.3, linewidth=1, label="best episode")
    _draw(upper, runs, "score_mean", _SCORE, "mean score")
    _draw(lower, runs, "behavior_entropy", _ENTROPY, "behavior entropy")
    upper.set_title(title, loc="left", color=TEXT, fontsize=12, fontweight="bold")
    upper.set_ylabel("score per episode", color=TEXT)
    upper.legend(frameon=False, loc="best", labelcolor=TEXT)
    lower.set_ylabel("behavior entropy\n(nats)", color=TEXT)
    highest = max([0.1, *(value for reports in runs for value in _column(reports, "behavior_entropy")[1])])
    lower.set_ylim(0, 1.1 * highest)
    lower.locator_params(axis="y", nbins=4)
    lower.set_xlabel("frames", color=TEXT)
    lower.xaxis.set_major_formatter(lambda value, _: _short(value))
    for axes in (upper, lower):
        _tidy(axes)
    figure.align_ylabels()
    figure.savefig(png_path, dpi=130)
    return True


def _draw(axes: Any, runs: Sequence[list[dict[str, Any]]], key: str, color: str, label: str) -> None:
    curves = [_column(reports, key) for reports in runs]
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return
    if len(curves) > 1:
        for frames, values in curves:
            axes.plot(frames, values, color=color, alpha=0.3, linewidth=1)
        # The mean exists only where every run has been.
        start, stop = max(frames[0] for frames, _ in curves), min(frames[-1] for frames, _ in curves)
        grid = np.linspace(start, stop, 200)
        mean = np.mean([np.interp(grid, frames, values) for frames, values in curves], axis=0)
        curves, label = [(grid, mean)], f"{label}, {len(runs)} runs"
    marker = "o" if len(curves[0][0]) == 1 else ""  # a line of one point would be invisible
    axes.plot(*curves[0], color=color, linewidth=2, label=label, solid_capstyle="round", marker=marker)


def _column(reports: Sequence[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Frames and values of the reports in which ``key`` was known."""
    known = [(report["frames"], report[key]) for report in reports if report.get(key) is not None]
    table = np.array(known, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _tidy(axes: Any) -> None:
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.tick_params(colors=TEXT, length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def _short(value: float) -> str:
    for unit, size in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
