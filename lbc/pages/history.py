"""The reports of a run as they arrive: a file of any length, read in evenly spaced places, then followed.

::

    history = History(Path("runs/pong/metrics.jsonl"))
    history.refresh()            # again and again: reads only what is new
    history.columns()            # {"frames": [...], "score_mean": [...], ...}, at most 2 x POINTS long

A file of 100,000 reports costs as much as one of a thousand.  Lines that are half written wait, damaged ones
are left out, a file that was cut (by a resumed run) or replaced is read anew, one that vanished is empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from lbc.pages.numbers import known, records
from lbc.reporting.sinks import scalars

POINTS = 500  # of a curve on a screen; a history holds between so many and twice as many
LONGEST = 1 << 20  # bytes of a line; what is longer is no report
_WHOLE = 2048  # bytes per point up to which a file is read whole
_TAIL = 1 << 16  # bytes in which the newest report is expected
_BINS = 120  # columns of a heat map
_SHOWN = re.compile(
    r"frames|seconds|episodes|updates|score_mean|score_max|eval_score|behavior_entropy|votes_entropy"
    r"|frames_per_second|policy_lag|sample_age|kl_between_policies|(time|responsibility)/\w+"
    r"|policy/\d+/(loss_\w+|gradient_norm|target_entropy|explained_variance)"
)
_SIGNIFICANT = 6  # digits; a screen shows fewer


@dataclass(frozen=True)
class Entry:
    """What a page shows of one report."""

    offset: int  # of its line
    numbers: dict[str, float]
    chosen: dict[str, tuple[float, ...]]  # episodes per region, of every dimension


class History:
    """One metrics.jsonl, thinned out."""

    def __init__(self, path: Path, points: int = POINTS) -> None:
        self._path, self._points = path, points
        self.generation = 0  # another number: what was handed out before is no longer a beginning of this
        self._signature: tuple[int, ...] = ()
        self._forget()

    def _forget(self) -> None:
        self.generation += 1
        self.kept: list[Entry] = []
        self.newest: Entry | None = None
        self._every = 0  # bytes between two lines that are kept
        self._position = 0  # up to here every complete line has been seen or skipped
        self._mark = (0, b"")  # the newest line that was seen, to tell whether the file only grew

    def refresh(self) -> bool:
        """Takes in what is new; whether anything was."""
        try:
            with self._path.open("rb") as file:
                state = os.fstat(file.fileno())
                signature = (state.st_ino, state.st_size, state.st_mtime_ns)
                if signature == self._signature:
                    return False
                if signature[:1] != self._signature[:1] or not self._only_grew(file, state.st_size):
                    self._forget()
                    if state.st_size > _WHOLE * self._points:
                        self._every = state.st_size // self._points
                self._signature = signature
                self._take(file, state.st_size)
        except OSError:  # it vanished, or may not be read
            if not self._signature:
                return False
            self._signature = ()
            self._forget()
        return True

    def _only_grew(self, file: BinaryIO, size: int) -> bool:
        offset, line = self._mark
        file.seek(offset)
        return size >= self._position and file.read(len(line)) == line

    def _take(self, file: BinaryIO, size: int) -> None:
        newest, end = newest_line(file, size)
        place = self._position
        if self.kept:
            place = max(place, self.kept[-1].offset + self._every)
        while place < end:
            offset, line = _line_from(file, place)
            if offset >= end or not line:
                break
            entry = _entry(offset, line)
            if entry is not None:
                self.kept.append(entry)
            place = max(file.tell(), offset + self._every)
        self._position = max(self._position, end)
        if newest is not None:
            self._mark, self.newest = newest, _entry(*newest)
        if len(self.kept) > 2 * self._points:
            self._thin_out(size)

    def _thin_out(self, size: int) -> None:
        self._every = max(2 * self._every, size // self._points)
        spaced = self.kept[:1]
        for entry in self.kept[1:]:
            if entry.offset >= spaced[-1].offset + self._every:
                spaced.append(entry)
        self.kept = spaced
        self.generation += 1

    def columns(self, start: int = 0) -> dict[str, list[float | None]]:
        """Numbers of the entries from ``start`` on and of the newest report, by name."""
        entries = self.kept[start:]
        last = self.kept[-1].offset if self.kept else -1
        if self.newest is not None and self.newest.offset > last:
            entries = [*entries, self.newest]
        names = dict.fromkeys(name for entry in entries for name in entry.numbers)
        return {name: [entry.numbers.get(name) for entry in entries] for name in names}

    def regions(self) -> list[dict[str, Any]]:
        """Per dimension of psi: the share of episodes begun in each region, over training."""
        size = max(1, -(-len(self.kept) // _BINS))
        bins = [self.kept[i : i + size] for i in range(0, len(self.kept), size)]
        names = dict.fromkeys(name for entry in self.kept for name in entry.chosen)
        return [{"name": name, **_shares(name, bins)} for name in names]

    def reports(self, count: int = 200) -> list[dict[str, Any]]:
        """At most so many whole reports, spread over the file, in the order of time."""
        step = max(1, -(-len(self.kept) // count))
        offsets = [entry.offset for entry in self.kept[::step]]
        if self.newest is not None and self.newest.offset not in offsets[-1:]:
            offsets.append(self.newest.offset)
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            lines = [_line_from(file, offset)[1] for offset in offsets]
            return [report for report in map(parsed, lines) if report is not None]
        return []


def newest_line(file: BinaryIO, size: int) -> tuple[tuple[int, bytes] | None, int]:
    """Offset and bytes of the last line that is a report, and where complete lines end."""
    end = 0
    for window in (_TAIL, LONGEST):
        start = max(0, size - window)
        file.seek(start)
        text = file.read(size - start)
        whole = text.rfind(b"\n") + 1
        end = start + whole if whole else max(0, start)
        begin = text.find(b"\n") + 1 if start else 0
        while begin < whole:
            place = max(begin, text.rfind(b"\n", 0, whole - 1) + 1)
            if parsed(text[place:whole]) is not None:
                return (start + place, text[place:whole]), end
            whole = place
        if not start:
            break
    return None, end


def parsed(line: bytes) -> dict[str, Any] | None:
    """The report in a line, if it is one."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        if isinstance(found, dict) and known([found.get("frames")]):
            return found
    return None


def sparkline(path: Path, points: int = 24) -> list[float]:
    """The course of the score in few numbers."""
    history = History(path, points)
    history.refresh()
    scores = known(history.columns().get("score_mean", []))
    return scores[:: -(-len(scores) // (2 * points)) or 1]


def _line_from(file: BinaryIO, place: int) -> tuple[int, bytes]:
    """The first line that begins at ``place`` or later."""
    file.seek(max(0, place - 1))
    if place:
        file.readline(LONGEST)
    return file.tell(), file.readline(LONGEST)


def _entry(offset: int, line: bytes) -> Entry | None:
    report = parsed(line)
    if report is None:
        return None
    try:
        numbers = dict(_shown({key: value for key, value in report.items() if key != "dimensions"}))
    except (OverflowError, RecursionError):  # digits or brackets by the hundred
        return None
    chosen = {
        sys.intern(str(dimension.get("name"))): tuple(known(dimension["chosen"]))
        for dimension in records(report, "dimensions")
        if isinstance(dimension.get("chosen"), list)
    }
    return Entry(offset, numbers, chosen)


def _shown(report: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in scalars(report):
        if _SHOWN.fullmatch(name):
            yield sys.intern(name), float(f"{value:.{_SIGNIFICANT}g}")


def _shares(name: str, bins: Sequence[Sequence[Entry]]) -> dict[str, Any]:
    """Frames at the end of each bin, and the regions' shares in it; bins without an episode are left out."""
    width = max(len(entry.chosen.get(name, ())) for entries in bins for entry in entries)
    frames, seconds, shares = [], [], []
    for entries in bins:
        counts = [entry.chosen[name] for entry in entries if len(entry.chosen.get(name, ())) == width]
        sums = [sum(region) for region in zip(*counts, strict=True)]
        total = sum(sums)
        if total > 0:
            frames.append(entries[-1].numbers["frames"])
            seconds.append(entries[-1].numbers.get("seconds"))
            shares.append([round(count / total, 4) for count in sums])
    return {"frames": frames, "seconds": seconds, "shares": shares, "regions": width}
