"""Which runs there are under some folders, as they come and go."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lbc.errors import UserError
from lbc.pages.history import History
from lbc.pages.overview import Run, locked_inodes
from lbc.reporting.plain import printable
from lbc.reporting.rundir import run_directories

MOST_RUNS = 2000
_SEARCH_SECONDS = 5.0  # between two searches for new runs
_SPARK_SECONDS = 0.25  # of reading for sparklines, per refresh
_HISTORIES = 12  # runs whose curves are held in memory


class Catalogue:
    """All runs under some folders, as they come and go; what it holds in memory is bounded."""

    def __init__(self, roots: Sequence[Path]) -> None:
        for root in roots:
            if not root.is_dir():
                raise UserError(f"'{root}' is no folder; name run directories, or a folder that holds some.")
        self._roots = list(roots)
        self._runs: dict[str, Run] = {}
        self._histories: OrderedDict[str, History] = OrderedDict()
        self._searched = float("-inf")

    def __getitem__(self, identity: str) -> Run:
        return self._runs[identity]

    def overview(self) -> list[dict[str, Any]]:
        """What is known of every run: those that run by name, then the others, newest first."""
        self._search()
        self._draw_sparklines()
        locked = locked_inodes()
        found = [run.overview(locked) for run in self._runs.values()]
        return sorted(found, key=_place)

    def history(self, identity: str) -> History:
        """Of one run, refreshed; the least recently wanted are forgotten."""
        run = self._runs[identity]
        history = self._histories.pop(identity, None) or History(run.directory.metrics)
        self._histories[identity] = history
        while len(self._histories) > _HISTORIES:
            self._histories.popitem(last=False)
        history.refresh()
        return history

    def _search(self) -> None:
        if time.monotonic() - self._searched < _SEARCH_SECONDS:
            return
        found = {run.id: run for run in self._found()}
        self._runs = {identity: self._runs.get(identity, run) for identity, run in found.items()}
        for identity in self._histories.keys() - found.keys():
            del self._histories[identity]
        self._searched = time.monotonic()

    def _found(self) -> Iterator[Run]:
        count = 0
        for root in self._roots:
            for path in run_directories(root):
                if count == MOST_RUNS:
                    return
                count += 1
                inside = len(self._roots) == 1 and path != root
                name = path.relative_to(root if inside else root.parent)
                yield Run(path, printable(str(name) if name.parts else path.resolve().name))

    def _draw_sparklines(self) -> None:
        end = time.monotonic() + _SPARK_SECONDS
        for run in self._runs.values():
            if time.monotonic() > end:
                return
            run.draw_sparkline()


def _place(run: dict[str, Any]) -> tuple[bool, int, str]:
    over = run["state"] != "running"
    return over, -run["changed"] if over else 0, run["name"]
