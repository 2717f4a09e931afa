"""Everything that a run says: its directory, the progress display, logs, picture and last words."""

from __future__ import annotations

from lbc.reporting.plots import learning_curve
from lbc.reporting.reporter import RunReporter
from lbc.reporting.rundir import RunDirectory, read_metrics

__all__ = ["RunDirectory", "RunReporter", "learning_curve", "read_metrics"]
