"""How the figures of this room look: matplotlib without global state, colours for everybody."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbc.errors import UserError
from lbc.reporting.colours import GRID, QUIET, TEXT

STYLES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)))  # one more each time the palette repeats
DPI = 130
_LETTERS, _TITLE_LETTERS, _CAPTION_LETTERS = 12.0, 8.5, 15.5  # that fit into an inch, in three sizes
_SAMPLE = 8  # letters that a legend's line sample takes


def figure(width: float, height: float) -> Any:
    if not importlib.util.find_spec("matplotlib"):
        raise UserError("figures need matplotlib; install it with: pip install matplotlib")
    from matplotlib.figure import Figure  # without pyplot: no display needed

    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Any, png: Path) -> None:
    png.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(png, dpi=DPI)


def title(drawn: Any, text: str) -> None:
    drawn.suptitle(
        _wrapped(drawn, text, _TITLE_LETTERS), x=0.01, ha="left", color=TEXT, fontsize=12.5, fontweight="bold"
    )


def titled_legend(drawn: Any, text: str, handles: Sequence[Any]) -> None:
    """Title and legend one above the other, where a layout engine would lay them over each other."""
    longest = max(len(handle.get_label()) for handle in handles)
    across = int(drawn.get_figwidth() * _LETTERS / (longest + _SAMPLE))
    legend = drawn.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=max(1, min(len(handles), across)),
        frameon=False,
        labelcolor=TEXT,
        title=_wrapped(drawn, text, _TITLE_LETTERS),
        title_fontproperties={"size": 12.5, "weight": "bold"},
        alignment="left",
    )
    legend.get_title().set_color(TEXT)


def caption(drawn: Any, text: str) -> None:
    """What the marks mean: a figure without it cannot be read."""
    drawn.supxlabel(_wrapped(drawn, text, _CAPTION_LETTERS), x=0.01, ha="left", color=QUIET, fontsize=8.5)


def _wrapped(drawn: Any, text: str, letters: float) -> str:
    return textwrap.fill(text, max(20, int(drawn.get_figwidth() * letters)))


def tidy(axes: Any, grid: str = "both") -> None:
    axes.grid(True, axis=grid, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=TEXT, length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
