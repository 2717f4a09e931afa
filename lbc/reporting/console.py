"""The first and the last words of a run in the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from lbc.reporting.progress import clock

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*%@"  # for streams that cannot carry the blocks


def header_lines(header: dict[str, Any], directory: Path) -> list[str]:
    """The facts that a run states about itself, one per line."""
    facts = {name: value for name, value in header.items() if value is not None}
    facts["directory"] = directory
    width = max(len(name) for name in facts)
    return [f"{name.replace('_', ' '):<{width}}  {_shown(value)}" for name, value in facts.items()]


def closing_lines(
    summary: dict[str, Any], reports: Sequence[dict[str, Any]], picture: Path | None, stream: TextIO
) -> list[str]:
    """What was learned, in a few lines; what a run has not measured is not mentioned."""
    scores = [report["score_mean"] for report in reports if report.get("score_mean") is not None]
    lines = []
    if scores:
        curve = sparkline(scores, blocks=_BLOCKS if _carries(stream) else _ASCII)
        lines.append(f"score    {scores[0]:,.2f} -> {scores[-1]:,.2f}  (best {max(scores):,.2f})  {curve}")
    else:
        lines.append("score    no episode has ended")
    last = {**(reports[-1] if reports else {}), **summary}
    lines.append(
        f"run      {last.get('frames', 0):,} frames, {last.get('updates', 0):,} updates,"
        f" {last.get('episodes', 0):,} episodes in {clock(last.get('seconds', 0.0))}"
    )
    if summary.get("favourite_tau"):
        lines.append(
            f"favours  tau {_vector(summary['favourite_tau'])}, omega {_vector(summary['favourite_omega'])}"
        )
    if picture is not None:
        lines.append(f"curve    {picture}")
    return lines


def sparkline(values: Sequence[float], width: int = 40, blocks: str = _BLOCKS) -> str:
    """``values`` as a tiny curve; where there are more than ``width``, each block is a mean."""
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)] if count else [0]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = (min(means), max(means)) if means else (0.0, 0.0)
    scale = (len(blocks) - 1) / (high - low) if high > low else 0.0
    return "".join(blocks[round((mean - low) * scale)] for mean in means)


def _vector(values: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.2f}' for value in values)})"


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _carries(stream: TextIO) -> bool:
    try:
        _BLOCKS.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
