"""What is shown while a run goes on: one live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import importlib.util
import math
import time
from typing import Any, Protocol, TextIO

from lbc.types import ProgressSnapshot

_PLAIN_INTERVAL = 10.0  # seconds between two lines in a log file


class Progress(Protocol):
    """``update`` may be called as often as wanted; ``stop`` leaves the terminal as it was."""

    def update(self, snapshot: ProgressSnapshot) -> None: ...

    def stop(self) -> None: ...


def make_progress(stream: TextIO) -> Progress:
    if stream.isatty() and importlib.util.find_spec("rich"):
        return LiveProgress(stream)
    return PlainProgress(stream)


class PlainProgress:
    """For pipes, log files and terminals without rich."""

    def __init__(self, stream: TextIO, interval: float = _PLAIN_INTERVAL) -> None:
        self._stream = stream
        self._interval = interval
        self._printed_at = -math.inf
        self._pending: ProgressSnapshot | None = None

    def update(self, snapshot: ProgressSnapshot) -> None:
        self._pending = snapshot
        if time.monotonic() - self._printed_at >= self._interval:
            self._print()

    def stop(self) -> None:
        self._print()

    def _print(self) -> None:
        if self._pending is None:
            return
        print(_line(self._pending), file=self._stream, flush=True)
        self._printed_at = time.monotonic()
        self._pending = None


class LiveProgress:
    """rich redraws four times a second from its own thread, however often ``update`` is called."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._rich = RichProgress(
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("[cyan]{task.fields[speed]}[/] frames/s"),
            TextColumn("score [bold green]{task.fields[score]}[/]"),
            TextColumn("entropy [magenta]{task.fields[entropy]}[/]"),
            TextColumn("[dim]{task.fields[left]} left[/]"),
            console=Console(file=stream),
            refresh_per_second=4,
        )
        self._task: Any = self._rich.add_task("", total=1.0, speed="-", score="-", entropy="-", left="-")
        self._rich.start()

    def update(self, snapshot: ProgressSnapshot) -> None:
        self._rich.update(
            self._task,
            completed=snapshot.fraction,
            speed=f"{snapshot.frames_per_second:,.0f}",
            score=_number(snapshot.score_mean),
            entropy=_number(snapshot.behavior_entropy),
            left=_time_left(snapshot),
        )

    def stop(self) -> None:
        self._rich.stop()


def clock(seconds: float) -> str:
    """``4:05`` or ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _line(snapshot: ProgressSnapshot) -> str:
    return (
        f"{snapshot.fraction:4.0%}  {snapshot.frames:>13,} frames  {snapshot.frames_per_second:>8,.0f}/s"
        f"  score {_number(snapshot.score_mean):>9}  entropy {_number(snapshot.behavior_entropy):>5}"
        f"  {_time_left(snapshot)} left"
    )


def _number(value: float) -> str:
    return f"{value:,.2f}" if math.isfinite(value) else "-"


def _time_left(snapshot: ProgressSnapshot) -> str:
    if snapshot.fraction <= 0:
        return "-"
    return clock(max(0.0, snapshot.seconds * (1 - snapshot.fraction) / snapshot.fraction))
