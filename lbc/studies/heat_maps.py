"""Courses of regions as heat maps: one column per tau or omega, in their real values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbc.behavior import Dimension
from lbc.reporting.colours import QUIET, TEXT
from lbc.studies.courses import Course, region_name
from lbc.studies.figures import short

_TICKS = 5


def draw(seeds: Sequence[Sequence[Course]], png: Path, title: str) -> None:
    from matplotlib.figure import Figure

    taus = [k for k, course in enumerate(seeds[0]) if course.dimension.name.startswith("tau")]
    others = [k for k in range(len(seeds[0])) if k not in taus]
    groups = [group for group in (taus, others) if group]
    across = max(len(group) for group in groups)
    returns = any(np.isfinite(course.mean_return).any() for course in seeds[0])
    down = len(groups) * (2 if returns else 1)
    figure = Figure(figsize=(3.3 * across + 1.4, 2.15 * down + 0.7), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    for g, group in enumerate(groups):
        row = g * (2 if returns else 1)
        for column, k in enumerate(group):
            same = [dimensions[k] for dimensions in seeds]
            shares = _mean([course.share for course in same])
            limits = (0.0, 3.0 / len(shares))  # up to three times an even share
            above = grid[row, column]
            _bar(figure, _map(above, same[0], shares, "viridis", limits), above, "max")
            if returns:
                relative = _mean([_relative(course.mean_return) for course in same])
                size = np.abs(relative[np.isfinite(relative)])
                reach = float(np.percentile(size, 98)) if size.any() else 1.0
                below = grid[row + 1, column]
                _bar(figure, _map(below, same[0], relative, "PuOr_r", (-reach, reach)), below, "both")
        grid[row, 0].set_ylabel("share of\nepisodes", color=TEXT, fontsize=9)
        if returns:
            grid[row + 1, 0].set_ylabel("return, less\nthe regions' mean", color=TEXT, fontsize=9)
    words = f"mean of {len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    figure.suptitle(f"{title}, {words}", x=0.01, ha="left", color=TEXT, fontsize=12, fontweight="bold")
    note = "Horizontal: frames.  Grey: no episode, or a region that no bandit knows."
    figure.supxlabel(note, x=0.01, ha="left", color=QUIET, fontsize=8.5)
    figure.savefig(png, dpi=90)


def _mean(maps: Sequence[np.ndarray]) -> np.ndarray:
    """Over seeds, where they are known."""
    stack = np.stack(maps)
    known = np.isfinite(stack)
    return np.where(known.any(0), np.where(known, stack, 0.0).sum(0) / np.maximum(known.sum(0), 1), np.nan)


def _relative(returns: np.ndarray) -> np.ndarray:
    """[R, C] less the mean over the regions that are known at that time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column in which none is
        found: np.ndarray = returns - np.nanmean(returns, 0)
    return found


def _map(axes: Any, course: Course, values: np.ndarray, colours: str, limits: tuple[float, float]) -> Any:
    axes.set_visible(True)
    axes.set_facecolor("#c9ced4")
    heights = np.arange(course.dimension.regions + 1)
    mesh = axes.pcolormesh(course.edges, heights, values, cmap=colours, vmin=limits[0], vmax=limits[1])
    axes.set_title(_symbol(course.dimension.name), loc="left", color=TEXT, fontsize=11)
    axes.set_yticks(*_ticks(course.dimension))
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(colors=TEXT, length=2, labelsize=8)
    for side in axes.spines.values():
        side.set_visible(False)
    return mesh


def _bar(figure: Any, mesh: Any, axes: Any, extend: str) -> None:
    bar = figure.colorbar(mesh, ax=axes, pad=0.02, extend=extend)
    bar.ax.tick_params(labelsize=7, colors=TEXT, length=2)
    bar.outline.set_visible(False)


def _symbol(name: str) -> str:
    kind, _, number = name.partition("_")
    symbol = {"tau": "τ", "omega": "ω"}.get(kind, kind)
    return f"${symbol}_{{{number}}}$" if number else symbol


def _ticks(dimension: Dimension) -> tuple[list[float], list[str]]:
    """Real values at some of the regions' edges; a joint dimension has points, named in their middle."""
    count = dimension.regions
    if dimension.component < 0:
        some = np.unique(np.linspace(0, count - 1, min(count, _TICKS)).round().astype(int))
        return [r + 0.5 for r in some], [region_name(dimension, int(r)) for r in some]
    some = np.unique(np.linspace(0, count, min(count, _TICKS) + 1).round().astype(int))
    ends = [dimension.value(int(r), 0.0) if r < count else dimension.value(count - 1, 1.0) for r in some]
    return [float(r) for r in some], [f"{x[0]:.2g}" for x in ends]
