"""All runs of a queue at a glance: a live table on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import importlib.util
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from lbc.reporting.progress import clock
from lbc.scores.tables import short
from lbc.studies.state import ACTIVE, DONE, WAITING, WORDS, State, grouped, mean, seconds_left, speed_of

_PLAIN_INTERVAL = 60.0  # seconds between two looks in a log file
_AROUND = 9  # lines of a screen that are not rows of the table
_COLOURS = {"running": "cyan", "evaluating": "cyan", "done": "green", "failed": "red", "stopped": "yellow"}


class Display(Protocol):
    def update(self, states: Sequence[State], last: bool = False) -> None: ...

    def say(self, line: str) -> None: ...

    def stop(self) -> None: ...


def make_display(stream: TextIO, jobs: int = 1) -> Display:
    if stream.isatty() and importlib.util.find_spec("rich"):
        return LiveDisplay(stream, jobs)
    return PlainDisplay(stream, jobs)


@dataclass(frozen=True)
class Row:
    """One run; or, where they are many, all runs of one task and label."""

    states: tuple[State, ...]

    @property
    def urgency(self) -> int:
        return min(WORDS.index(state.word) for state in self.states)

    @property
    def word(self) -> str:
        """``running`` of one; ``running, 1/3 done`` of several."""
        word, done = WORDS[self.urgency], sum(state.word == DONE for state in self.states)
        if not done or done == len(self.states):
            return word
        told = [] if word == DONE else [word]
        return ", ".join([*told, f"{done}/{len(self.states)} done"])

    def cells(self) -> dict[str, str]:
        """What is said about it, by heading."""
        first = self.states[0]
        speed = speed_of(self.states)
        left = seconds_left(self.states) if speed else None
        frames = sum(state.frames for state in self.states)
        return {
            "game": first.run.variant.task,
            "card": first.run.variant.label,
            "seed": str(first.run.seed) if len(self.states) == 1 else "",
            "state": self.word,
            "frames": short(frames) if frames else "",
            "%": f"{_share(self.states):.0%}" if self.word != WAITING else "",
            "score": _number(mean(state.score for state in self.states)),
            "best": _number(max((s.best for s in self.states if s.best is not None), default=None)),
            "HNS %": _number(mean(state.human_normalised for state in self.states)),
            "frames/s": f"{speed:,.0f}" if speed else "",
            "left": clock(left) if left is not None else "",
        }


def rows_of(states: Sequence[State], most: int) -> tuple[list[Row], list[State]]:
    """At most so many rows, in the order of the queue, and the states that none of them shows."""
    rows = [Row((state,)) for state in states]
    if len(rows) > most:
        rows = [Row(tuple(members)) for members in grouped(states)]
    urgent = sorted(range(len(rows)), key=lambda i: rows[i].urgency)[:most]
    hidden = [state for i, row in enumerate(rows) if i not in urgent for state in row.states]
    return [rows[i] for i in sorted(urgent)], hidden


def headings_of(rows: Sequence[Row]) -> list[str]:
    """Those of columns that say something: a single card need not be named in every row."""
    cells = [row.cells() for row in rows]
    names = list(cells[0]) if cells else []
    told = ("game", "card")
    return [
        name
        for name in names
        if any(row[name] for row in cells) and (name not in told or len({row[name] for row in cells}) > 1)
    ]


class PlainDisplay:
    def __init__(self, stream: TextIO, jobs: int = 1, interval: float = _PLAIN_INTERVAL) -> None:
        self._stream, self._jobs = stream, jobs
        self._interval = interval
        self._printed_at = -math.inf

    def update(self, states: Sequence[State], last: bool = False) -> None:
        if time.monotonic() - self._printed_at < self._interval and not last:
            return
        self._printed_at = time.monotonic()
        self.say("  ".join(overall(states, self._jobs)))
        for state in states:
            if state.word in ACTIVE:
                cells = Row((state,)).cells()
                forms = {"%": "{}", "score": "score {}", "frames/s": "{} frames/s", "left": "{} left"}
                told = [form.format(cells[name]) for name, form in forms.items() if cells[name]]
                self.say(f"      {state.run.name} {state.word}: {', '.join(told)}")

    def say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def stop(self) -> None:
        pass


class LiveDisplay:
    """rich redraws it from its own thread."""

    def __init__(self, stream: TextIO, jobs: int = 1) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream, highlight=False)
        self._jobs = jobs
        self._live = Live(console=self._console, refresh_per_second=4, vertical_overflow="crop")
        self._live.start()

    def update(self, states: Sequence[State], last: bool = False) -> None:
        self._live.update(self._drawn(states), refresh=last)

    def _drawn(self, states: Sequence[State]) -> Any:
        from rich.console import Group
        from rich.markup import escape
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        rows, hidden = rows_of(states, max(3, self._console.height - _AROUND))
        names, cells = headings_of(rows), [row.cells() for row in rows]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name in names:  # where the screen is narrow, names get shorter, but no number
            width = None if name in ("game", "card") else max(len(name), *(len(row[name]) for row in cells))
            text = name in ("game", "card", "state")
            table.add_column(name, justify="left" if text else "right", no_wrap=True, min_width=width)
        for row, told in zip(rows, cells, strict=True):
            colour = _COLOURS.get(WORDS[row.urgency], "dim")
            styled = {"state": f"[{colour}]{told['state']}[/]"}
            table.add_row(*(styled.get(name) or escape(told[name]) for name in names))
        bar = Table.grid()
        bar.add_row(ProgressBar(total=1.0, completed=_share(states), width=min(100, self._console.width)))
        words = Text("  ".join(overall(states, self._jobs)).strip())
        more = [Text(f"not shown: {', '.join(_counted(hidden))}", style="dim")] if hidden else []
        return Group(table, *more, Text(), bar, words)

    def say(self, line: str) -> None:
        self._console.print(line, markup=False)

    def stop(self) -> None:
        self._live.stop()


def count_of(runs: int) -> str:
    return f"{runs} run{'s' * (runs != 1)}"


def overall(states: Sequence[State], jobs: int) -> list[str]:
    """All of them in a few words: share, states, speed and the time left."""
    speed, left = speed_of(states), seconds_left(states, jobs)
    return [
        f"{_share(states):4.0%}",
        f"{count_of(len(states))}: {', '.join(_counted(states))}",
        *([f"{speed:,.0f} frames/s"] if speed else []),
        *([f"{clock(left)} left"] if left else []),
    ]


def _share(states: Sequence[State]) -> float:
    """Of all budgets together, each run counting the same."""
    return sum(state.share for state in states) / max(1, len(states))


def _counted(states: Sequence[State]) -> list[str]:
    """``["1 running", "2 done"]``; of a single run only the word."""
    counts = Counter(state.word for state in states)
    words = [word for word in WORDS if counts[word]]
    return words if len(states) == 1 else [f"{counts[word]} {word}" for word in words]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if 0 < abs(value) < 0.01:
        return f"{value:.1g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
