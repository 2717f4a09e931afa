"""Several variants in one figure or one table, drawn from their run directories alone.

::

    compare({"main": [Path("runs/a"), Path("runs/b")], "one policy": [...]}, Path("docs/x.png"), "Catch")
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbc.reporting.colours import GRID, PALETTE, QUIET, TEXT
from lbc.reporting.curves import FINAL_SHARE, Curve, band, interval, interval_name, load_all

Runs = Mapping[str, Sequence[Path]]  # label -> run directories, one per seed
Panel = Mapping[str, Mapping[str, Sequence[Curve]]]  # title -> label -> curves, one per seed

_STYLES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)))  # one more each time the palette repeats
_LABEL_HEIGHT = 0.052  # of the axes, for one line of text at the curves' ends


def compare(
    curves: Runs,
    png: Path,
    title: str,
    ylabel: str = "score per episode",
    references: Mapping[str, float] | None = None,
    smooth: int = 1,
) -> bool:
    """One panel, the names at the ends of the curves.  Returns whether there was anything to draw."""
    return compare_panels({title: curves}, png, ylabel, references, smooth)


def compare_panels(
    panels: Mapping[str, Runs],
    png: Path,
    ylabel: str = "score per episode",
    references: Mapping[str, float] | None = None,
    smooth: int = 1,
    title: str = "",
) -> bool:
    """One panel per task side by side; a label has the same colour in all of them."""
    loaded = {
        name: {label: load_all(paths) for label, paths in curves.items()} for name, curves in panels.items()
    }
    return compare_grid({ylabel: loaded}, png, references, smooth, title)


def compare_grid(
    rows: Mapping[str, Panel],
    png: Path,
    references: Mapping[str, float] | None = None,
    smooth: int = 1,
    title: str = "",
) -> bool:
    """Rows of panels: what is on their vertical axis -> panels.  References are for the first row."""
    rows = {ylabel: _with_curves(panels) for ylabel, panels in rows.items()}
    rows = {ylabel: panels for ylabel, panels in rows.items() if panels}
    if not rows or not importlib.util.find_spec("matplotlib"):
        return False
    from matplotlib.figure import Figure  # without pyplot: no global state, no display needed

    names = list(dict.fromkeys(name for panels in rows.values() for name in panels))
    labels = list(
        dict.fromkeys(label for panels in rows.values() for found in panels.values() for label in found)
    )
    looks = {label: _look(i) for i, label in enumerate(labels)}
    single = len(names) == len(rows) == 1
    height = 4.8 if single else 4.3 if len(rows) == 1 else 3.0 * len(rows) + 0.5
    figure = Figure(figsize=(9, 4.8) if single else (3.4 * len(names) + 2.0, height), layout="constrained")
    grid = figure.subplots(len(rows), len(names), squeeze=False, sharex="col")
    for i, (ylabel, panels) in enumerate(rows.items()):
        for axes, name in zip(grid[i], names, strict=True):
            ends = {label: _draw(axes, c, looks[label], smooth) for label, c in panels.get(name, {}).items()}
            for text, place in (references or {}).items() if i == 0 else ():
                _reference(axes, text, place)
            _tidy(axes, name if i == 0 else "", last=i == len(rows) - 1)
            if single:
                _label_ends(axes, ends, looks)
        grid[i][0].set_ylabel(ylabel, color=TEXT)
    if not single:
        figure.legend(
            handles=_legend_lines(labels, looks),
            loc="outside upper center",
            ncols=min(len(labels), 4),
            frameon=False,
            labelcolor=TEXT,
        )
    figure.align_ylabels()
    if title:
        figure.suptitle(title, x=0.01, ha="left", color=TEXT, fontsize=12, fontweight="bold")
    figure.supxlabel(caption(next(iter(rows.values())), smooth), x=0.01, ha="left", color=QUIET, fontsize=8.5)
    png.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(png, dpi=130)
    return True


def _with_curves(panels: Panel) -> dict[str, dict[str, Sequence[Curve]]]:
    found = {name: {label: c for label, c in curves.items() if c} for name, curves in panels.items()}
    return {name: curves for name, curves in found.items() if curves}


def caption(loaded: Panel, smooth: int) -> str:
    """What lines and bands are: a figure without it cannot be read."""
    counts = sorted({len(found) for curves in loaded.values() for found in curves.values()})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    words = f"Line: mean of {seeds} seed{'s' if counts[-1] > 1 else ''}"
    names = dict.fromkeys(interval_name(count) for count in counts if count > 1)
    words += f"; band: {' or '.join(names)}" if names else ""
    return words + (f"; running mean over {smooth} reports." if smooth > 1 else ".")


def table(curves: Runs, digits: int = 2) -> str:
    """A Markdown table, one row per label."""
    rows: list[str] = []
    intervals: dict[str, None] = {}
    for label, paths in curves.items():
        found = load_all(paths)
        if not found:
            rows.append(f"| {label} | - | - | - | - | - |")
            continue
        finals = np.array([curve.final for curve in found])
        low, high = interval(finals)
        spread = f" [{low:.{digits}f}, {high:.{digits}f}]" if len(found) > 1 else ""
        if len(found) > 1:
            intervals[interval_name(len(found))] = None
        seeds = ", ".join(f"{final:.{digits}f}" for final in finals)
        area = np.mean([curve.area for curve in found])
        frames = min(int(curve.frames[-1]) for curve in found)
        speed = np.mean([curve.frames_per_second for curve in found])
        rows.append(
            f"| {label} | {finals.mean():.{digits}f}{spread} | {seeds} | {area:.{digits}f} "
            f"| {frames:,} | {speed:,.0f} |"
        )
    brackets = f" [{' or '.join(intervals)}]" if intervals else ""
    header = f"| variant | final score{brackets} | each seed | mean height of the curve | frames | frames/s |"
    note = f"Final score: mean of the reported scores over the last {FINAL_SHARE:.0%} of the frames."
    return "\n".join([header, "|---|---|---|---|---|---|", *rows, "", note])


def _look(index: int) -> dict[str, Any]:
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": _STYLES[index // len(PALETTE) % len(_STYLES)],
    }


def _draw(axes: Any, curves: Sequence[Curve], look: dict[str, Any], smooth: int) -> tuple[float, float]:
    """Draws mean and band; returns the line's end."""
    b = band(curves, smooth)
    if len(curves) > 1:
        axes.fill_between(b.frames, b.low, b.high, color=look["color"], alpha=0.16, linewidth=0)
    marker = "o" if b.frames[0] == b.frames[-1] else ""  # a line of one point would be invisible
    axes.plot(b.frames, b.mean, linewidth=2, marker=marker, **look)
    return float(b.frames[-1]), float(b.mean[-1])


def _label_ends(axes: Any, ends: Mapping[str, tuple[float, float]], looks: Mapping[str, Any]) -> None:
    """Each curve's name to the right of the axes, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    wanted = {label: (height - low) / (high - low) for label, (_, height) in ends.items()}
    for label, place in spread(wanted, _LABEL_HEIGHT).items():
        frames, height = ends[label]
        color = looks[label]["color"]
        axes.annotate(
            label,
            xy=(frames, height),
            xytext=(1.045, place),
            textcoords=axes.transAxes,
            va="center",
            color=color,
            fontsize=9.5,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "relpos": (0.0, 0.5),  # where the text begins: no line runs through another's text
                "color": color,
                "linewidth": 0.8,
                "alpha": 0.55,
                "shrinkB": 1,
            },
        )


def spread(wanted: Mapping[str, float], gap: float) -> dict[str, float]:
    """Places as near to the wanted ones as a distance of ``gap`` allows, in their order, within [0, 1]."""
    order = sorted(wanted, key=lambda label: wanted[label])
    places: list[list[float]] = []  # clusters of neighbours: [sum of wanted first places, size]
    for label in order:
        places.append([wanted[label], 1.0])
        while len(places) > 1 and _first(places[-2], gap) + gap * places[-2][1] > _first(places[-1], gap):
            total, size = places.pop()
            places[-1] = [places[-1][0] + total, places[-1][1] + size]
    found = [_first(cluster, gap) + gap * i for cluster in places for i in range(int(cluster[1]))]
    return dict(zip(order, found, strict=True))


def _first(cluster: Sequence[float], gap: float) -> float:
    """Place of a cluster's lowest member, its middle at the mean of what its members want."""
    total, size = cluster
    return max(0.0, min(total / size - gap * (size - 1) / 2, 1.0 - gap * (size - 1)))


def _legend_lines(labels: Sequence[str], looks: Mapping[str, Any]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], linewidth=2, label=label, **looks[label]) for label in labels]


def _reference(axes: Any, text: str, height: float) -> None:
    axes.axhline(height, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        text,
        xy=(0.01, height),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        color=QUIET,
        fontsize=8.5,
    )


def _tidy(axes: Any, title: str, last: bool = True) -> None:
    axes.set_title(title, loc="left", color=TEXT, fontsize=12, fontweight="bold")
    axes.set_xlabel("frames" if last else "", color=TEXT)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    axes.locator_params(axis="x", nbins=6)
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.set_xlim(left=0)
    plain_axes(axes)


def plain_axes(axes: Any) -> None:
    """Without ticks and frame."""
    axes.tick_params(colors=TEXT, length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def short(value: float) -> str:
    """``2.5M`` for 2,500,000."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
