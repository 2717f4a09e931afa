"""What a Python program may do while a run goes on, without being part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lbc.errors import UserError
from lbc.interfaces import Reporter
from lbc.reporting.plain import plain
from lbc.types import ProgressSnapshot


class Callback:
    """Every method does nothing; override those that you need.  All are called in the training thread.

    An exception in any of them ends the run, with a valid checkpoint, and is raised by whoever trains.
    """

    def on_report(self, metrics: dict[str, Any]) -> bool | None:
        """A line of metrics.jsonl, as it is written; True asks the run to stop."""
        return None

    def on_checkpoint(self, path: Path) -> None:
        """A checkpoint is on the disk."""

    def on_end(self, summary: dict[str, Any]) -> None:
        """The last call, after summary.json was written; also of a run that was stopped."""


class CallbackReporter:
    """Implements ``lbc.interfaces.Reporter``: tells another one first, then the callbacks."""

    def __init__(self, reporter: Reporter, callbacks: Sequence[Callback]) -> None:
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise UserError(f"a callback must be an lbc.Callback, not a {type(callback).__name__}.")
        self._reporter = reporter
        self._callbacks = callbacks
        self.stopping = False
        self.error: Exception | None = None  # the first that a callback raised

    def start(self, header: dict[str, Any]) -> None:
        self._reporter.start(header)

    def progress(self, snapshot: ProgressSnapshot) -> None:
        self._reporter.progress(snapshot)

    def mark(self) -> int:
        return self._reporter.mark()

    def rewind(self, mark: int) -> None:
        self._reporter.rewind(mark)

    def report(self, metrics: dict[str, Any]) -> None:
        self._reporter.report(metrics)
        self._call(lambda callback: callback.on_report(plain(metrics)))

    def checkpoint(self, path: Path) -> None:
        self._call(lambda callback: callback.on_checkpoint(path))

    def finish(self, summary: dict[str, Any]) -> None:
        self._reporter.finish(summary)
        self._call(lambda callback: callback.on_end(plain(summary)))

    def _call(self, call: Callable[[Callback], object]) -> None:
        """Once one has failed, the run is about to end, and none is called any more."""
        for callback in self._callbacks if self.error is None else ():
            try:
                self.stopping |= call(callback) is True
            except Exception as error:
                self.error, self.stopping = error, True
                return
