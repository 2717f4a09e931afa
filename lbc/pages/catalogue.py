"""Which runs there are, and what a list of them says: only the ends of their files are read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import tomllib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lbc.errors import UserError
from lbc.pages.history import History, newest_line, parsed, sparkline
from lbc.pages.numbers import known
from lbc.reporting import RunDirectory

MOST_RUNS, MOST_FOLDERS, DEPTH = 2000, 20_000, 4  # of a search
_SEARCH_SECONDS = 5.0  # between two searches for new runs
_QUIET_SECONDS = 60.0  # a run that has written so lately is running, also where locks cannot be seen
_SPARK_SECONDS = 0.25  # of reading for sparklines, per refresh
_HISTORIES = 12  # runs whose curves are held in memory


class Run:
    """One run directory; its files are read again only where they have changed."""

    def __init__(self, path: Path, name: str) -> None:
        self.directory, self.name = RunDirectory(path), name
        self.id = hashlib.blake2b(os.fsencode(path.absolute()), digest_size=8).hexdigest()
        self._read: dict[Path, tuple[tuple[int, ...], Any]] = {}
        self._spark: list[float] = []
        self._spark_size = -1

    @property
    def config(self) -> dict[str, Any] | None:
        """None where it cannot be read."""
        found: dict[str, Any] | None = self._file(self.directory.config, _toml)
        return found

    def overview(self, locked: frozenset[int]) -> dict[str, Any]:
        config, now = self.config, time.time()
        summary = self._file(self.directory.summary, _json) or {}
        newest = self._file(self.directory.metrics, _newest) or {}
        size, changed = _size_and_time(self.directory.metrics)
        running = self._inode() in locked or now - changed < _QUIET_SECONDS
        state, says = _state(config, summary, newest, size, running, self.directory.path)
        tables = config or {}
        return {
            "id": self.id,
            "name": self.name,
            "state": state,
            "says": says,
            "game": _text(tables, "environment", "id"),
            "seed": _first(_table(tables, "run").get("seed")),
            "budget": _first(_table(tables, "run").get("frames")),
            "frames": _first(newest.get("frames")),
            "seconds": _first(newest.get("seconds")),
            "score": _first(newest.get("score_mean")),
            "best": _first(newest.get("score_max")),
            "speed": _first(newest.get("frames_per_second")),
            "changed": round(changed),
            "spark": self._spark,
        }

    def draw_sparkline(self) -> bool:
        """Anew where the file is a twentieth longer than it was, or shorter."""
        size, _ = _size_and_time(self.directory.metrics)
        if self._spark_size <= size <= 1.05 * self._spark_size:
            return False
        self._spark, self._spark_size = sparkline(self.directory.metrics), size
        return True

    def _inode(self) -> int:
        try:
            return self.directory.path.stat().st_ino
        except OSError:
            return -1

    def _file(self, path: Path, read: Any) -> Any:
        """What ``read`` finds in a file; remembered until the file changes."""
        try:
            state = path.stat()
            signature = (state.st_ino, state.st_size, state.st_mtime_ns)
            known_as, found = self._read.get(path, ((), None))
            if known_as != signature:
                found = read(path)
                self._read[path] = (signature, found)
            return found
        except (OSError, ValueError, RecursionError):
            return None


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
        locked = _locked_inodes()
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
                yield Run(path, _printable(str(name) if name.parts else path.resolve().name))

    def _draw_sparklines(self) -> None:
        end = time.monotonic() + _SPARK_SECONDS
        for run in self._runs.values():
            if time.monotonic() > end:
                return
            run.draw_sparkline()


def run_directories(root: Path) -> Iterator[Path]:
    """``root`` itself, or the run directories in it; links to folders are not followed."""
    for count, (folder, inner, files) in enumerate(os.walk(root)):
        path = Path(folder)
        if "metrics.jsonl" in files or ("config.toml" in files and "checkpoints" in inner):
            yield path
            inner.clear()
        elif len(path.relative_to(root).parts) >= DEPTH or count >= MOST_FOLDERS:
            inner.clear()
        inner[:] = sorted(name for name in inner if not name.startswith("."))


def _state(
    config: dict[str, Any] | None,
    summary: dict[str, Any],
    newest: dict[str, Any],
    size: int,
    running: bool,
    path: Path,
) -> tuple[str, str]:
    """Running, finished, stopped or damaged, and a sentence where one helps."""
    if config is None or not _text(config, "environment", "id"):
        return "damaged", "Its config.toml is missing, or is no configuration of a run."
    if size > 0 and not newest:
        return "damaged", "No line of its metrics.jsonl is a report."
    if summary.get("outcome") == "finished":
        return "finished", "" if newest else "It has ended, but there are no reports."
    resume = f"`lbc train --resume {_printable(str(path))}` goes on."
    if summary.get("outcome"):
        return "stopped", f"Interrupted; {resume}"
    if running:
        return "running", "" if newest else "No report yet; the first comes within seconds."
    return "stopped", f"It ended without a summary, as after a kill; {resume}"


def _place(run: dict[str, Any]) -> tuple[bool, int, str]:
    over = run["state"] != "running"
    return over, -run["changed"] if over else 0, run["name"]


def _locked_inodes() -> frozenset[int]:
    """Of files that some process has locked: a run at work locks its directory.  Empty where unknown."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return frozenset()
    found = set()
    for line in lines:
        with contextlib.suppress(ValueError, IndexError):
            found.add(int(line.split("FLOCK", 1)[1].split()[3].rsplit(":", 1)[1]))
    return frozenset(found)


def _size_and_time(path: Path) -> tuple[int, float]:
    try:
        state = path.stat()
    except OSError:
        return 0, 0.0
    return state.st_size, state.st_mtime


def _newest(path: Path) -> dict[str, Any] | None:
    """The few numbers of the newest report that a list shows."""
    with path.open("rb") as file:
        line, _ = newest_line(file, os.fstat(file.fileno()).st_size)
    report = (line and parsed(line[1])) or {}
    wanted = ("frames", "seconds", "score_mean", "score_max", "frames_per_second")
    return {name: report[name] for name in wanted if name in report}


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _json(path: Path) -> dict[str, Any] | None:
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else None


def _table(tables: dict[str, Any], section: str) -> dict[str, Any]:
    found = tables.get(section)
    return found if isinstance(found, dict) else {}


def _text(tables: dict[str, Any], section: str, key: str) -> str:
    found = _table(tables, section).get(key)
    return _printable(found) if isinstance(found, str) else ""


def _first(value: Any) -> float | None:
    """A finite number, or None."""
    return next(iter(known([value])), None)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
