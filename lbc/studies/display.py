"""One line over all runs of a study: live on a terminal, now and then elsewhere."""

from __future__ import annotations

import importlib.util
import math
import time
from typing import Any, Protocol, TextIO

from lbc.reporting.progress import clock

_PLAIN_INTERVAL = 60.0  # seconds between two lines in a log file


class Display(Protocol):
    def update(self, frames: int, done: int, active: int) -> None: ...

    def say(self, line: str) -> None: ...

    def stop(self) -> None: ...


def make_display(stream: TextIO, frames: int, runs: int) -> Display:
    if stream.isatty() and importlib.util.find_spec("rich"):
        return LiveDisplay(stream, frames, runs)
    return PlainDisplay(stream, frames, runs)


class PlainDisplay:
    def __init__(self, stream: TextIO, frames: int, runs: int, interval: float = _PLAIN_INTERVAL) -> None:
        self._stream = stream
        self._pace = _Pace(frames)
        self._runs = runs
        self._interval = interval
        self._printed_at = -math.inf

    def update(self, frames: int, done: int, active: int) -> None:
        if time.monotonic() - self._printed_at < self._interval:
            return
        self._printed_at = time.monotonic()
        speed, left = self._pace.at(frames)
        share = frames / self._pace.total
        self.say(f"{share:4.0%}  {done}/{self._runs} runs done, {active} active  {speed}/s  {left} left")

    def say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def stop(self) -> None:
        pass


class LiveDisplay:
    def __init__(self, stream: TextIO, frames: int, runs: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._pace = _Pace(frames)
        self._runs = runs
        self._rich = Progress(
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("[bold]{task.fields[runs]}[/] runs"),
            TextColumn("[cyan]{task.fields[speed]}[/] frames/s"),
            TextColumn("[dim]{task.fields[left]} left[/]"),
            console=Console(file=stream),
        )
        self._task: Any = self._rich.add_task("", total=max(1, frames), runs=f"0/{runs}", speed="-", left="-")
        self._rich.start()

    def update(self, frames: int, done: int, active: int) -> None:
        speed, left = self._pace.at(frames)
        runs = f"{done}/{self._runs}"
        self._rich.update(self._task, completed=frames, runs=runs, speed=speed, left=left)

    def say(self, line: str) -> None:
        self._rich.console.print(line, markup=False, highlight=False)

    def stop(self) -> None:
        self._rich.stop()


class _Pace:
    """Frames per second since the start, and the time left at that speed."""

    def __init__(self, total: int) -> None:
        self.total = max(1, total)
        self._began = time.monotonic()

    def at(self, frames: int) -> tuple[str, str]:
        speed = frames / max(time.monotonic() - self._began, 1e-9)
        return f"{speed:,.0f}", clock((self.total - frames) / speed) if speed > 0 else "-"
