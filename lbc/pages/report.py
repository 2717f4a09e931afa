"""A report: one HTML file about any number of runs, which needs nothing but a browser.

::

    write_report([Path("runs/asterix")], Path("report.html"))

The file holds its script, its data and its film; its own policy forbids it to load anything.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from lbc import __version__
from lbc.errors import UserError, missing_extra
from lbc.pages import charts, sections, tables
from lbc.pages.groups import GamePart, by_game
from lbc.pages.lights import SHAPES, diagnosed, diagnostics
from lbc.pages.reading import find_runs
from lbc.pages.steering import Film, best_film
from lbc.reporting.colours import DARK_PALETTE, PALETTE

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_THEME = (
    'document.documentElement.dataset.theme=matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light"'
)


@dataclass(frozen=True)
class Written:
    """What a report holds."""

    runs: int
    games: Sequence[str]
    size: int  # bytes
    left_out: Sequence[str]


def write_report(paths: Sequence[Path], out: Path, video: bool = True) -> Written:
    """Reads the runs in `paths` and writes the page; it is there as a whole or not at all."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"'{out}' should end in .html.")
    if out.is_dir():
        raise UserError(f"'{out}' is a directory; name a file with --out.")
    script = _plotly()
    runs, left_out = find_runs(paths)
    parts, doubled = by_game(runs)
    films = {part.name: best_film(part.runs) for part in parts} if video else {}
    text = page(parts, [*left_out, *doubled], films, script)
    half = out.with_name(out.name + ".tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8", errors="replace")
        os.replace(half, out)
    except OSError as error:
        raise UserError(
            f"'{out}' cannot be written ({error.strerror}); choose another file with --out."
        ) from None
    shown = sum(len(part.runs) for part in parts)
    return Written(shown, [part.name for part in parts], out.stat().st_size, [*left_out, *doubled])


def page(parts: Sequence[GamePart], notices: Sequence[str], films: Mapping[str, Film], script: str) -> str:
    """The whole page; `script` is plotly.js."""
    figures = sections.Figures()
    body = "".join(_game(part, i, figures, films.get(part.name)) for i, part in enumerate(parts))
    names = [part.name for part in parts]
    links = "".join(f'<a href="#game-{i}">{escape(name)}</a>' for i, name in enumerate(names))
    nav = f'<nav aria-label="Games">{links}</nav>' if len(names) > 1 else ""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in notices)
    notice = f'<div class="notice" role="note"><b>Left out</b><ul>{items}</ul></div>' if items else ""
    data = json.dumps(figures.data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(", ".join(names[:3]))} – lbc report</title>
<style>{_palettes()}{_asset("report.css")}</style>
<script>{_THEME}</script></head><body>{SHAPES}
<header><div><h1>Training report</h1>
<span class="quiet">Learnable Behavior Control, {time.strftime("%Y-%m-%d %H:%M")}</span></div>
<button type="button" class="theme">Dark</button></header>
<main>{nav}{notice}{body}</main>
<footer>Written by <code>lbc report</code> {__version__}; all of it is in this file.</footer>
<script type="application/json" id="figures">{data}</script>
<script>{script}</script>
<script>{_asset("report.js")}</script>
</body></html>
"""


def _game(part: GamePart, number: int, figures: sections.Figures, film: Film | None) -> str:
    found = {variant.label: diagnosed(variant) for variant in part.variants}
    legend = sections.legend(part, number)
    score = charts.lines(part, "score_mean", "Score", "score per episode")
    entropy = charts.lines(part, "behavior_entropy", "Entropy of the behavior", "nats", zero=True)
    pieces = (
        f'<section><h2 id="game-{number}">{escape(part.name)}</h2>{sections.tiles(part, found)}',
        f"<h3>Learning curves</h3>{legend}",
        figures.place(score, number, "", sections.curves_caption(part)),
        f"<h3>Scores</h3>{tables.score_table(part)}",
        "<h3>Diagnostics</h3><p>Known ways to go wrong, judged by the newest part of each run.</p>",
        diagnostics(part, found),
        f"<h3>Behavior</h3>{legend if entropy else ''}",
        figures.place(entropy, number, "low", "Entropy of the behavior: 0 is one action for sure."),
        sections.behaviors(part, number, figures),
        sections.film(film),
        f"<h3>Speed</h3>{legend}{sections.speed(part, number, figures)}",
        f"<h3>Configuration</h3>{tables.configuration(part)}",
        f"<h3>Machine and versions</h3>{tables.machines(part)}</section>",
    )
    return "".join(pieces)


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise missing_extra("plotly", "dashboard") from None
    return str(get_plotlyjs())


def _asset(name: str) -> str:
    return files("lbc.pages").joinpath("assets", name).read_text(encoding="utf-8")


def _palettes() -> str:
    light, dark = (
        "".join(f"--c{i}:{colour};" for i, colour in enumerate(palette))
        for palette in (PALETTE, DARK_PALETTE)
    )
    return f":root{{{light}}}:root[data-theme=dark]{{{dark}}}"
