"""What a run has said, as tables (pandas): finished, running or archived, whatever its last line looks like.

::

    record = load_run("runs/asterix")
    record.metrics                              # a row per report, a column per number
    record.regions                              # a row per report, dimension of psi and region
    load_runs("results/minatar-breakout/*/*")   # reports of many runs, with run, variant and seed
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbc.cards.toml import text_of
from lbc.errors import UserError, missing_extra
from lbc.reporting.rundir import RunDirectory, read_config, read_json, read_metrics, run_directories
from lbc.reporting.sinks import scalars

if TYPE_CHECKING:
    from pandas import DataFrame

_COUNTS = ("frames", "episodes", "updates")
_SEED_FOLDER = re.compile(r"seed(\d+)")
_BEGUN = re.compile(r"-s\d+-\d{8}-\d{6}(-\d+)?$")  # the end of a name under runs/


@dataclass(frozen=True)
class RunRecord:
    """Everything that a run directory says about its run."""

    path: Path
    config: dict[str, Any]  # by section, as in config.toml; of another program, as in its config.json
    summary: dict[str, Any]  # empty while the run goes on
    reports: list[dict[str, Any]]  # as in metrics.jsonl

    def __repr__(self) -> str:
        outcome = self.summary.get("outcome", "not ended")
        return f"<RunRecord {self.path}: {len(self.reports)} reports, {outcome}>"

    @cached_property
    def metrics(self) -> DataFrame:
        """One row per report; nested numbers are columns such as ``policy/0/target_entropy``."""
        table = _pandas().DataFrame([_numbers(report) for report in self.reports])
        whole = [name for name in _COUNTS if name in table and (table[name].abs() < 2**53).all()]
        return table.astype(dict.fromkeys(whole, "int64")).copy()  # in one piece: pandas warns otherwise

    @cached_property
    def regions(self) -> DataFrame:
        """One row per report, dimension and region: how often it was chosen, and what it brought."""
        return _pandas().DataFrame(list(self._regions()))

    def _regions(self) -> Iterator[dict[str, Any]]:
        for report in self.reports:
            dimensions = report.get("dimensions")
            for dimension in dimensions if isinstance(dimensions, list) else ():
                if not isinstance(dimension, dict):
                    continue
                lists = {key: x for key, x in dimension.items() if isinstance(x, list)}
                for region in range(min(map(len, lists.values()), default=0)):
                    place = {"frames": report.get("frames"), "dimension": dimension.get("name")}
                    yield place | {"region": region} | {key: x[region] for key, x in lists.items()}

    @property
    def episodes(self) -> int | None:
        """That had ended at the last report; None where nothing is known yet."""
        return next((r["episodes"] for r in reversed(self.reports) if "episodes" in r), None)

    @property
    def seed(self) -> int | None:
        run = self.config.get("run")
        known = (run if isinstance(run, dict) else self.config).get("seed")
        named = _SEED_FOLDER.fullmatch(self.path.name)
        return known if isinstance(known, int) else int(named[1]) if named else None

    @property
    def variant(self) -> str:
        """What its seeds have in common: the folder above ``seed<k>`` (or its label.txt), or the run's name
        without seed and date."""
        path = self.path.resolve()
        if not _SEED_FOLDER.fullmatch(path.name):
            return _BEGUN.sub("", path.name)
        label = path.parent / "label.txt"
        return text_of(label).strip() if label.is_file() else path.parent.name


def load_run(directory: str | Path) -> RunRecord:
    """What the run in `directory` has said so far."""
    run = RunDirectory(Path(directory))
    if not (run.config.is_file() or run.metrics.is_file()):
        raise UserError(f"'{directory}' holds no run.")
    return RunRecord(run.path, read_config(run), read_json(run.summary), read_metrics(run.metrics))


def load_runs(pattern: str | Path | Sequence[str | Path]) -> DataFrame:
    """All reports of all runs that a pattern such as ``runs/*`` finds, or that lie below its folders."""
    patterns = [pattern] if isinstance(pattern, str | Path) else pattern
    found = [Path(path) for one in patterns for path in sorted(glob.glob(str(one), recursive=True))]
    runs = dict.fromkeys(run for path in found for run in run_directories(path))
    if not runs:
        raise UserError(f"there is no run at '{', '.join(map(str, patterns))}'.")
    tables = []
    for record in map(load_run, runs):
        table = record.metrics
        named = table.assign(run=str(record.path), variant=record.variant, seed=record.seed)
        tables.append(named[["run", "variant", "seed", *table.columns]])
    return _pandas().concat(tables, ignore_index=True)


def _numbers(report: dict[str, Any]) -> dict[str, float]:
    try:
        return dict(scalars(report))
    except RecursionError:  # nested beyond all reason: no report of ours
        return {}


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise missing_extra("pandas", "studies") from None
    return pandas
