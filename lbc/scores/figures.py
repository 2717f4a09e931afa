"""The paper's figures of scores, from the same data as the tables.

::

    aggregates(summaries, Path("aggregates.png"))       bars, agents in the order of their frames
    world_records(columns, Path("records.png"))         who reached which human world record
    versus(meme, lbc, Path("versus.png"))               two agents game by game, on a log scale
    learning_curves(runs, Path("curves.png"))           one panel per game, intervals over seeds
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbc.reporting.colours import BAR, PALETTE, QUIET, TEXT
from lbc.reporting.curves import FEW, band, interval_name
from lbc.scores.aggregate import Estimate
from lbc.scores.drawing import (
    STYLES,
    caption,
    figure,
    save,
    tidy,
    title,
    titled_legend,
)
from lbc.scores.reference import Game, games
from lbc.scores.runs import Run, by_card
from lbc.scores.summary import MEASURES, Column, Summary, records
from lbc.scores.tables import short

SMOOTH = 5  # reports in the running mean of a learning curve, as in the paper
LOWEST = 1.0  # percent: where a log scale of HNS begins
_OURS = "LBC"
_HIGHLIGHT, _USER = PALETTE[0], PALETTE[1]


def aggregates(summaries: Sequence[Summary], png: Path) -> None:
    """What each agent reached, beside the frames that it took."""
    ordered = sorted(summaries, key=lambda s: (s.column.frames, s.name), reverse=True)  # fewest frames on top
    panels: list[tuple[str, list[Estimate]]] = [
        ("frames of training", [Estimate(s.column.frames) for s in ordered]),
        ("mean HNS (%)", [s.hns.mean for s in ordered]),
        ("median HNS (%)", [s.hns.median for s in ordered]),
        ("IQM of HNS (%)", [s.hns.iqm for s in ordered]),
        ("world records", [Estimate(s.hwrb) for s in ordered]),
    ]
    drawn = figure(13.5, 1.5 + 0.42 * len(ordered))
    all_axes = drawn.subplots(1, len(panels), sharey=True)
    for axes, (name, estimates) in zip(all_axes, panels, strict=True):
        log = name.startswith("frames")
        _bars(axes, estimates, [_color(s.column) for s in ordered], log)
        axes.set_title(name, loc="left", color=TEXT, fontsize=10.5)
    all_axes[0].set_yticks(range(len(ordered)), [_with_games(s.column) for s in ordered])
    title(drawn, "Atari-57: what was reached, and the frames it took")
    caption(drawn, _bars_caption(summaries))
    save(drawn, png)


def _bars(axes: Any, estimates: Sequence[Estimate], colors: Sequence[str], log: bool) -> None:
    values = [estimate.value for estimate in estimates]
    ends = [estimate.value if estimate.high is None else estimate.high for estimate in estimates]
    axes.barh(range(len(values)), values, color=colors, height=0.66)
    tidy(axes, "x")
    if log:
        axes.set_xscale("log")
        axes.set_xlim(1e4, 60 * max(values))
        axes.set_xticks([1e4, 1e6, 1e8, 1e10])
        axes.minorticks_off()
    else:
        axes.set_xlim(min(0.0, *values), 1.45 * max(*ends, 1e-9))
        axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    for place, (estimate, end) in enumerate(zip(estimates, ends, strict=True)):
        if estimate.low is not None and estimate.high is not None:
            axes.plot([estimate.low, estimate.high], [place, place], color=TEXT, linewidth=1.1)
        text = short(estimate.value) if log else f"{estimate.value:,.0f}"
        axes.annotate(
            text, (end, place), (4, 0), textcoords="offset points", va="center", color=TEXT, fontsize=9
        )


def _bars_caption(summaries: Sequence[Summary]) -> str:
    over = {s.hns.resampled for s in summaries if s.hns.resampled}
    if not over:
        return "One game and one seed: no intervals."
    both = "games, or over seeds where there are several" if over == {"games", "seeds"} else "".join(over)
    return f"Bars and numbers: the estimate. Lines: 95% bootstrap intervals over {both}."


def world_records(columns: Sequence[Column], png: Path) -> None:
    """A mark where an agent reaches the human world record; the count stands at the end of its row."""
    broken = {column.name: set(records(column)) for column in columns}
    ordered = sorted(columns, key=lambda column: len(broken[column.name]))  # most on top
    names = [game for game in games() if any(game in found for found in broken.values())]
    drawn = figure(max(6.0, 3.4 + 0.29 * len(names)), 2.0 + 0.4 * len(ordered))
    axes = drawn.subplots()
    for row, column in enumerate(ordered):
        reached = [i for i, game in enumerate(names) if game in broken[column.name]]
        absent = [i for i, game in enumerate(names) if game not in column.scores]
        axes.scatter(reached, [row] * len(reached), s=62, color=_color(column), marker="s", zorder=3)
        axes.scatter(absent, [row] * len(absent), s=20, color=QUIET, marker="x", linewidths=0.9, zorder=3)
        count = f"{len(reached)} of {len(column.scores)}"
        edge = axes.get_yaxis_transform()
        axes.text(1.01, row, count, transform=edge, va="center", color=TEXT, fontsize=10)
    axes.set_yticks(range(len(ordered)), [column.name for column in ordered])
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8.5)
    axes.set_xlim(-0.7, max(len(names), 1) - 0.3)
    axes.set_ylim(-0.6, len(ordered) - 0.4)
    tidy(axes)
    title(drawn, "Human world records reached")
    caption(
        drawn,
        "Square: score ≥ record. Cross: no score for this game. Games that nobody mastered are left out.",
    )
    save(drawn, png)


def versus(first: Column, second: Column, png: Path) -> None:
    """Two agents on the games that both have, sorted by how far they are apart."""
    one, two = (column.measured(MEASURES["hns"]) for column in (first, second))
    shared = [game for game in games() if game in one and game in two]
    shared.sort(key=lambda game: math.log(_logged(two[game]) / _logged(one[game])))
    drawn = figure(8.6, 1.7 + 0.185 * len(shared))
    axes = drawn.subplots()
    axes.set_xscale("log")
    axes.axvline(100.0, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    colors = (_USER, _HIGHLIGHT)
    for row, game in enumerate(shared):
        ends = (_logged(one[game]), _logged(two[game]))
        axes.plot(ends, [row, row], color=colors[ends[1] >= ends[0]], linewidth=1.6, alpha=0.45, zorder=2)
    marks = zip((first, second), (one, two), colors, ("o", "D"), strict=True)
    for column, found, color, marker in marks:
        values = [_logged(found[game]) for game in shared]
        axes.scatter(
            values, range(len(shared)), s=30, color=color, marker=marker, label=column.name, zorder=3
        )
    axes.set_yticks(range(len(shared)), shared, fontsize=8.5)
    axes.set_ylim(-0.8, len(shared) - 0.2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("human-normalised score (%), log scale", color=TEXT)
    axes.minorticks_off()
    tidy(axes)
    ahead = sum(two[game] > one[game] for game in shared)
    behind = sum(two[game] < one[game] for game in shared)
    plural = "" if len(shared) == 1 else "s"
    heading = f"{second.name} ahead in {ahead} of {len(shared)} game{plural}, {first.name} in {behind}"
    titled_legend(drawn, heading, axes.get_legend_handles_labels()[0])
    below = any(value < LOWEST for found in (one, two) for game, value in found.items() if game in shared)
    note = f" Scores below {LOWEST:g}% are drawn there." if below else ""
    caption(drawn, f"The line has the colour of whoever is ahead. Dashed: an average human.{note}")
    save(drawn, png)


def _logged(hns: float) -> float:
    return max(hns, LOWEST)


def learning_curves(runs: Sequence[Run], png: Path) -> None:
    """All games in one sheet, a line per card."""
    cards = by_card(runs)
    names = [game for game in games() if any(run.game.name == game for run in runs)]
    across = min(len(names), 4 if len(names) <= 12 else 6)
    down = -(-len(names) // across)
    drawn = figure(max(6.4, 3.1 * across), 1.3 + 0.15 * len(cards) + 2.35 * down)
    all_axes = list(drawn.subplots(down, across, squeeze=False).flat)
    for axes, name in zip(all_axes, names, strict=False):
        for index, members in enumerate(cards.values()):
            _curve(axes, [run for run in members if run.game.name == name], index)
        _references(axes, games()[name])
        axes.set_title(name, loc="left", color=TEXT, fontsize=10.5)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlim(left=0)
        tidy(axes)
    for axes in all_axes[len(names) :]:
        axes.set_visible(False)
    titled_legend(drawn, "Score per episode over frames", _lines(list(cards)))
    caption(drawn, _curves_caption(cards, names))
    save(drawn, png)


def _curve(axes: Any, runs: Sequence[Run], index: int) -> None:
    if not runs:
        return
    found = band([run.curve for run in runs], SMOOTH)
    look = _look(index)
    if len(runs) > 1:
        axes.fill_between(found.frames, found.low, found.high, color=look["color"], alpha=0.18, linewidth=0)
    marker = "o" if found.frames[0] == found.frames[-1] else ""  # a line of one point would be invisible
    axes.plot(found.frames, found.mean, linewidth=1.8, marker=marker, **look)


def _references(axes: Any, game: Game) -> None:
    """Human and record, where the curves come near: lines far above would flatten them."""
    low, high = axes.get_ylim()
    for text, height, side in (("human", game.human, "top"), ("record", game.record, "bottom")):
        if low <= height <= high + 0.35 * (high - low):
            axes.set_ylim(low, max(axes.get_ylim()[1], height + 0.12 * (high - low)))  # room for its name
            axes.axhline(height, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            axes.annotate(
                text,
                (0.02, height),
                (0, -2 if side == "top" else 2),
                va=side,
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                color=QUIET,
                fontsize=8,
            )


def _curves_caption(cards: dict[str, list[Run]], names: Sequence[str]) -> str:
    counts = sorted(
        {sum(run.game.name == name for run in members) for members in cards.values() for name in names} - {0}
    )
    seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    text = f"Mean over {seeds} seed{'s' if counts[-1] > 1 else ''}, running mean of {SMOOTH} reports."
    if counts[-1] > 1:
        kinds = {interval_name(count): None for count in counts if count > 1}
        text += f" Band: {' or '.join(kinds)}. A line ends with its shortest run."
        if len(kinds) > 1:
            text += f" (Up to {FEW} seeds: the former.)"
    return text


def _lines(labels: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], linewidth=2, label=label, **_look(i)) for i, label in enumerate(labels)]


def _look(index: int) -> dict[str, Any]:
    return {
        "color": PALETTE[index % len(PALETTE)],
        "linestyle": STYLES[index // len(PALETTE) % len(STYLES)],
    }


def _color(column: Column) -> str:
    """The paper's agent and the user's runs stand out."""
    if not column.published:
        return _USER
    return _HIGHLIGHT if column.name == _OURS else BAR


def _with_games(column: Column) -> str:
    count = len(column.scores)
    plural = "" if count == 1 else "s"
    return column.name if count == len(games()) else f"{column.name} ({count} game{plural})"
