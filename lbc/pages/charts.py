"""The figures of a report as plain data; assets/report.js draws them.

Every figure is a dictionary with a ``kind``: lines, areas, bars or heat.  Colours are numbers there, since a
page has a light and a dark palette.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lbc.behavior.space import build_space
from lbc.cards import from_toml
from lbc.errors import UserError
from lbc.pages.binned import BINS, Binned
from lbc.pages.filming import own_code
from lbc.pages.groups import GamePart, Variant
from lbc.pages.reading import Run
from lbc.reporting import RunDirectory
from lbc.reporting.curves import band
from lbc.runtime.clock import PARTS

POINTS = 400  # of a line: two in each pixel of a phone, one in each of a desk's
HUMAN_REACH = 2.0  # a human's score is drawn where it is at most so far above the best score

Figure = dict[str, Any]


def lines(part: GamePart, key: str, title: str, unit: str, zero: bool = False) -> Figure | None:
    """One line per variant over frames; of several seeds the mean, an interval, and each of them thinly."""
    drawn: list[Figure] = []
    for number, variant in enumerate(part.variants):
        curves = [curve for curve in (run.curve(key) for run in variant.runs) if curve is not None]
        if not curves:
            continue
        style = {"name": variant.label, "colour": number}
        if len(curves) == 1:
            x, y = thinned(curves[0].frames, curves[0].scores)
            drawn.append({**style, "x": plain(x), "y": plain(y)})
            continue
        for curve in curves:
            x, y = thinned(curve.frames, curve.scores, POINTS // 2)
            drawn.append({**style, "x": plain(x), "y": plain(y), "faint": True})
        found = band(curves)
        edges = {"low": plain(found.low), "high": plain(found.high)}
        drawn.append({**style, "x": plain(found.frames), "y": plain(found.mean), **edges})
    if not drawn:
        return None
    levels = _references(part, drawn) if key == "score_mean" else []
    return {"kind": "lines", "title": title, "y": unit, "lines": drawn, "levels": levels, "zero": zero}


def _references(part: GamePart, drawn: Sequence[Figure]) -> list[Figure]:
    """A human's score and that of chance, where the game has them and the curve would not be squashed."""
    if part.reference is None:
        return []
    best = max(value for line in drawn for value in line["y"] if value is not None)
    chance = {"name": "random", "y": part.reference.random}
    reach = part.reference.random + HUMAN_REACH * max(best - part.reference.random, 0.0)
    return (
        [chance, {"name": "human", "y": part.reference.human}] if part.reference.human <= reach else [chance]
    )


def responsibility(variant: Variant) -> Figure | None:
    """Who did what was done: each component's share in the actions, over training."""
    found = _summed([run.responsibility for run in variant.runs], variant)
    if found is None:
        return None
    x, shares = found
    names = component_names(variant.runs[0].config, shares.shape[1])
    columns = zip(names, shares.T, strict=False)
    series = [{"name": name, "colour": i, "y": plain(share)} for i, (name, share) in enumerate(columns)]
    return {
        "kind": "areas",
        "title": "Who is responsible",
        "y": "share in the actions",
        "x": x,
        "series": series,
    }


def regions(variant: Variant) -> list[Figure]:
    """Per dimension of psi: the share of episodes that were begun in each region, over training."""
    names = dict.fromkeys(name for run in variant.runs for name in run.chosen)
    labels = _region_labels(variant.runs[0])
    figures = []
    for name in names:
        found = _summed([run.chosen.get(name) for run in variant.runs], variant)
        if found is not None:
            x, shares = found
            count = shares.shape[1]
            marks = labels.get(name, [])
            marks = marks if len(marks) == count else [str(i + 1) for i in range(count)]
            figures.append(
                {"kind": "heat", "title": _symbol(name), "x": x, "labels": marks, "z": plain(shares.T)}
            )
    return figures


def _symbol(name: str) -> str:
    """``τ₁`` for ``tau_1``."""
    letter, _, index = name.partition("_")
    greek = {"tau": "τ", "omega": "ω"}.get(letter)
    return greek + index.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")) if greek else name


def time_spent(part: GamePart) -> Figure | None:
    """Where the time of the main thread went, one bar per variant."""
    rows, shares = [], []
    for variant in part.variants:
        spent = [run.time.on(np.array([0.0, np.inf]))[0] for run in variant.runs if run.time is not None]
        if spent and np.sum(spent) > 0:
            rows.append(variant.label)
            shares.append(np.sum(spent, axis=0) / np.sum(spent))
    if not rows:
        return None
    table = np.array(shares)
    series = [{"name": name, "colour": i, "x": plain(table[:, i])} for i, name in enumerate(PARTS)]
    return {"kind": "bars", "title": "Where the time goes", "rows": rows, "series": series}


def component_names(config: Mapping[str, Any], count: int) -> list[str]:
    """``policy 1: sqrt, discount 0.99``, or a number where the configuration does not tell."""
    try:
        population, chosen = config["population"], config["behavior"]["components"] or range(count)
        discounts, shapings = population["discounts"], population["shapings"]
        own = [f", entropy bonus {bonus:g}" for bonus in population.get("entropy_scalings", ())]
        own = own or [""] * len(discounts)
        names = [f"policy {p + 1}: {shapings[p]}, discount {discounts[p]:g}{own[p]}" for p in chosen]
        several = len(set(names)) < len(names)  # components of one policy
        return [f"component {i + 1}, {name}" for i, name in enumerate(names)] if several else names
    except (TypeError, ValueError, LookupError):
        return [f"component {i + 1}" for i in range(count)]


def _region_labels(run: Run) -> dict[str, list[str]]:
    """The value in the middle of each region, as the configuration cuts them."""
    if own_code(dict(run.config)) or "behavior" not in run.config:
        return {}
    try:
        config = from_toml(RunDirectory(run.path).config.read_text(encoding="utf-8"))
        space = build_space(config.behavior, config.population.size)
    except (UserError, OSError, ValueError):  # of an older version, perhaps
        return {}
    return {
        dimension.name: ["/".join(f"{x:.2g}" for x in dimension.value(i)) for i in range(dimension.regions)]
        for dimension in space.dimensions
    }


def _summed(parts: Sequence[Binned | None], variant: Variant) -> tuple[list[Any], np.ndarray] | None:
    """Frames and shares of all seeds together: [B], [B, size]; NaN where nothing happened."""
    there = [part for part in parts if part is not None]
    there = [part for part in there if part.size == there[0].size]
    end = max(run.most("frames") for run in variant.runs)
    if not there or end <= 0:
        return None
    grid = np.linspace(0.0, end, BINS + 1)
    sums = np.sum([part.on(grid) for part in there], axis=0)
    total = sums.sum(-1, keepdims=True)
    if not (total > 0).any():
        return None
    shares = np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 1e-9)
    return plain((grid[1:] + grid[:-1]) / 2), shares


def thinned(x: np.ndarray, y: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """At most `points` of a line, with the lowest and the highest of every stretch and both ends."""
    if len(x) <= points:
        return x, y
    kept = {0, len(x) - 1}
    for stretch in np.array_split(np.arange(len(x)), (points - 2) // 2):
        kept |= {int(stretch[y[stretch].argmin()]), int(stretch[y[stretch].argmax()])}
    order = sorted(kept)
    return x[order], y[order]


def plain(values: np.ndarray) -> list[Any]:
    """As JSON, with five digits, which is more than a screen shows; NaN is null."""
    if values.ndim > 1:
        return [plain(row) for row in values]
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]
