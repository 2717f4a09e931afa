"""The other parts of a report as HTML: facts, figures, film.  Whatever comes from a disk is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from lbc.pages import charts
from lbc.pages.diagnostics import Finding
from lbc.pages.groups import GamePart, Variant
from lbc.pages.lights import light, worst
from lbc.pages.steering import Film
from lbc.reporting.colours import PALETTE
from lbc.reporting.curves import interval_name
from lbc.scores.tables import short

_COLOURS = len(PALETTE)
_DASHES = ("solid", "dashed", "dotted")  # one more each time the palette repeats


class Figures:
    """Collects the data of the figures of a page; what it returns is their place there."""

    def __init__(self) -> None:
        self.data: list[charts.Figure] = []

    def place(self, figure: charts.Figure | None, game: int, size: str = "", caption: str = "") -> str:
        if figure is None:
            return ""
        self.data.append(figure)
        name = escape(f"{figure['title']}. {caption}".strip())
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return (
            f'<figure><div class="chart {size}" role="img" aria-label="{name}" data-game="{game}"'
            f' data-figure="{len(self.data) - 1}"></div>{below}</figure>'
        )


def tiles(part: GamePart, found: Mapping[str, Sequence[Finding]]) -> str:
    """What a hurried reader wants to know."""
    best = max(part.variants, key=_score)
    runs, several = part.runs, len(part.variants) > 1
    minutes = sum(run.seconds for run in runs) / 60.0
    cards = f"{len(part.variants)} {_plural('configuration', len(part.variants))}"
    facts = {
        f"final score of {best.label}" if several else "final score": f"{_score(best):,.4g}",
        f"{_plural('run', len(runs))} of {cards}": str(len(runs)),
        "frames in all": short(sum(run.most("frames") for run in runs)),
        "of training in all": f"{minutes / 60:,.1f} h" if minutes >= 60 else f"{minutes:,.1f} min",
    }
    cells = [f"<li><b>{escape(value)}</b><span>{escape(what)}</span></li>" for what, value in facts.items()]
    sign = light(worst([finding for findings in found.values() for finding in findings]))
    return f'<ul class="tiles">{"".join(cells)}<li><b>{sign}</b><span>worst of all signs</span></li></ul>'


def legend(part: GamePart, game: int) -> str:
    """Buttons that show and hide a variant in all figures of its game; one variant needs none."""
    if len(part.variants) == 1:
        return ""
    items = "".join(
        f'<li><button type="button" aria-pressed="true" data-game="{game}" data-line="{i}">'
        f'<span class="swatch" style="border-top:3px {_dash(i)} var(--c{i % _COLOURS})"></span>'
        f"{escape(variant.label)}</button></li>"
        for i, variant in enumerate(part.variants)
    )
    return f'<ul class="legend" aria-label="Show or hide">{items}</ul>'


def block_legend(figure: charts.Figure) -> str:
    items = "".join(
        f'<li><span class="block" style="background:var(--c{series["colour"] % _COLOURS})"></span>'
        f"{escape(series['name'])}</li>"
        for series in figure["series"]
    )
    return f'<ul class="legend">{items}</ul>'


def curves_caption(part: GamePart) -> str:
    kinds = dict.fromkeys(interval_name(len(v.runs)) for v in part.variants if len(v.runs) > 1)
    if not kinds:
        return "One seed each: no interval can be given."
    return f"Lines: means over seeds. Bands: {', or '.join(kinds)}. Thin lines: single seeds."


def behaviors(part: GamePart, game: int, figures: Figures) -> str:
    """Regions and responsibility, variant by variant."""
    pieces: list[str] = []
    for variant in part.variants:
        body = _regions(variant, game, figures) + _responsibility(variant, game, figures)
        if body:
            first = "" if pieces else " open"
            name = escape(variant.label)
            pieces.append(f"<details{first}><summary><b>{name}</b></summary>{body}</details>")
    if not pieces:
        return (
            '<p class="quiet">These runs kept no choices and no shares; archived runs keep curves only.</p>'
        )
    return "".join(pieces)


def _regions(variant: Variant, game: int, figures: Figures) -> str:
    maps = ""
    for figure in charts.regions(variant):
        place = figures.place(figure, game, "small", _brightest(figure))
        maps += f"<div><h4>{escape(figure['title'])}</h4>{place}</div>"
    if not maps:
        return ""
    return (
        "<p>Which regions of τ and ω the controller chose over training: a row is a region, bright where"
        f' many episodes began.</p><div class="many">{maps}</div>'
    )


def _responsibility(variant: Variant, game: int, figures: Figures) -> str:
    figure = charts.responsibility(variant)
    if figure is None:
        return ""
    return f"<h4>Who is responsible</h4>{block_legend(figure)}{figures.place(figure, game, 'low')}"


def speed(part: GamePart, game: int, figures: Figures) -> str:
    fast = charts.lines(part, "frames_per_second", "Speed", "frames per second", zero=True)
    spent = charts.time_spent(part)
    pieces = []
    if fast is not None:
        pieces.append(figures.place(fast, game, "low", "Frames per second, since the report before."))
    if spent is not None:
        caption = "Where the time of the main thread went."
        pieces.append(block_legend(spent) + figures.place(spent, game, "low", caption))
    if not pieces:
        return '<p class="quiet">These runs kept no speed; the table above has their mean.</p>'
    return f'<div class="pair">{"".join(f"<div>{piece}</div>" for piece in pieces)}</div>'


def film(found: Film | None) -> str:
    if found is None:
        return ""
    title = "<h3>Who is steering</h3>"
    if not found.uri:
        return f'{title}<p class="quiet">{escape(found.says)}</p>'
    return (
        f"{title}<p>The game, and beside it what every policy would do; small bars: every policy's share"
        ' in the action that was taken.</p><details class="moving" open><summary>Film</summary>'
        f'<img class="film" src="{found.uri}" alt="Film of an episode, with every policy\'s opinion">'
        f'</details><p class="quiet">{escape(found.says)}</p>'
    )


def _score(variant: Variant) -> float:
    return float(np.mean([run.final for run in variant.runs]))


def _brightest(figure: charts.Figure) -> str:
    most = max((value for row in figure["z"] for value in row if value is not None), default=0.0)
    return f"Brightest: {most:.0%} of the episodes."


def _plural(word: str, count: int) -> str:
    return word + "s" * (count != 1)


def _dash(index: int) -> str:
    return _DASHES[index // _COLOURS % len(_DASHES)]
