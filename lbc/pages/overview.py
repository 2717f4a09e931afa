"""What a list says of one run: only the ends of its files are read, and only where they have changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import tomllib
from pathlib import Path
from typing import Any

from lbc.pages.history import newest_line, parsed, sparkline
from lbc.pages.numbers import known
from lbc.reporting import RunDirectory
from lbc.reporting.plain import printable
from lbc.reporting.rundir import read_json

_QUIET_SECONDS = 60.0  # a run that has written so lately is running, also where locks cannot be seen


class Run:
    """One run directory."""

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
        if config is None and self.directory.config.exists():
            config = {}  # of no run
        summary = self._file(self.directory.summary, read_json) or {}
        newest = self._file(self.directory.metrics, _newest) or {}
        size, changed = _size_and_time(self.directory.metrics)
        running = self._inode() in locked or now - changed < _QUIET_SECONDS
        resume = "" if summary.get("outcome") == "finished" else self._resume()
        state, says = _state(config, summary, newest, size, running, resume)
        tables = config or {}
        return {
            "id": self.id,
            "name": self.name,
            "state": state,
            "says": says,
            "game": _text(tables, "environment", "id") or printable(str(summary.get("environment", ""))),
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

    def _resume(self) -> str:
        """Empty where there is nothing to go on from."""
        words = f" `lbc train --resume {printable(str(self.directory.path))}` goes on."
        return words if self.directory.saved() else ""

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


def _state(
    config: dict[str, Any] | None,
    summary: dict[str, Any],
    newest: dict[str, Any],
    size: int,
    running: bool,
    resume: str,
) -> tuple[str, str]:
    """Running, finished, stopped or damaged, and a sentence where one helps."""
    if config is not None and not _text(config, "environment", "id"):
        return "damaged", "Its config.toml is no configuration of a run."
    if size > 0 and not newest:
        return "damaged", "No line of its metrics.jsonl is a report."
    if summary.get("outcome") == "finished":
        return "finished", "" if newest else "It has ended, but there are no reports."
    if summary.get("outcome"):
        return "stopped", f"It was interrupted.{resume}"
    if running:
        return "running", "" if newest else "No report yet; the first comes within seconds."
    return "stopped", f"It ended without a summary, as after a kill.{resume}"


def locked_inodes() -> frozenset[int]:
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


def _table(tables: dict[str, Any], section: str) -> dict[str, Any]:
    found = tables.get(section)
    return found if isinstance(found, dict) else {}


def _text(tables: dict[str, Any], section: str, key: str) -> str:
    found = _table(tables, section).get(key)
    return printable(found) if isinstance(found, str) else ""


def _first(value: Any) -> float | None:
    """A finite number, or None."""
    return next(iter(known([value])), None)
