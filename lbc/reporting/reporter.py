"""The reporter of the command line: run directory, progress display, sinks and last words in one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TextIO

from lbc.reporting.console import closing_lines, header_lines
from lbc.reporting.machine import machine
from lbc.reporting.plots import learning_curve
from lbc.reporting.progress import Progress, make_progress
from lbc.reporting.rundir import RunDirectory, read_metrics
from lbc.reporting.sinks import Sink, make_sinks, wanted_sinks
from lbc.types import ProgressSnapshot


class RunReporter:
    """Implements ``lbc.interfaces.Reporter``.

    A context manager, because a crash must give the terminal back and flush the sinks::

        with RunReporter(RunDirectory(path), config_text, title) as reporter:
            train(config, reporter, ...)

    Nothing is written before ``start``: a run that cannot be assembled leaves no directory behind.
    """

    def __init__(
        self,
        directory: RunDirectory,
        config_text: str,
        title: str,
        stream: TextIO | None = None,
        resume: bool = False,
        longer: bool = False,  # with a larger budget than before
        sinks: Sequence[str] = ("tensorboard",),
    ) -> None:
        directory.refuse_other_run() if not resume else directory.require_run(longer)
        wanted_sinks(sinks)
        self._wanted_sinks = sinks
        self._resumed = resume
        self._longer = longer
        self._directory = directory
        self._config_text = config_text
        self._title = title
        self._stream = stream or sys.stdout
        self._sinks: list[Sink] = []
        self._progress: Progress | None = None

    def start(self, header: dict[str, Any]) -> None:
        if not self._resumed:
            self._directory.create(self._config_text)
        elif self._longer:
            self._directory.change_config(self._config_text)
        self._directory.note(machine())
        where = self._directory
        self._sinks = make_sinks(self._wanted_sinks, where.tensorboard, where.path.name, self._config_text)
        self._say([*header_lines(header, self._directory.path), ""])
        self._progress = make_progress(self._stream)

    def progress(self, snapshot: ProgressSnapshot) -> None:
        if self._progress is not None:
            self._progress.update(snapshot)

    def report(self, metrics: dict[str, Any]) -> None:
        self._directory.append(metrics)
        for sink in self._sinks:
            sink.write(metrics)

    def mark(self) -> int:
        return self._directory.position()

    def rewind(self, mark: int) -> None:
        self._directory.cut(mark)

    def finish(self, summary: dict[str, Any]) -> None:
        self.close()
        self._directory.finish(summary)
        drawn = learning_curve(self._directory.metrics, self._directory.picture, self._title)
        picture = self._directory.picture if drawn else None
        reports = read_metrics(self._directory.metrics)
        self._say(["", *closing_lines(summary, reports, picture, self._stream)])

    def close(self) -> None:
        """Stop the display and the sinks; harmless when they have been stopped."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        while self._sinks:
            self._sinks.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._directory.unlock()

    def _say(self, lines: list[str]) -> None:
        print("\n".join(lines), file=self._stream, flush=True)
