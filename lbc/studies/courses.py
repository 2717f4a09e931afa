"""How often each region of Psi was chosen, and what it brought, over the frames of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lbc.behavior import Dimension, build_space
from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.studies.given import config_of

COLUMNS = 40  # even stretches of frames that a run is cut into
LATE = 0.25  # the last part of a run, whose preferences are put into words


@dataclass(frozen=True)
class Course:
    """One dimension over one run, in even stretches of frames."""

    dimension: Dimension
    edges: np.ndarray  # [C + 1] frames
    chosen: np.ndarray  # [R, C] episodes begun in each region
    mean_return: np.ndarray  # [R, C] as it stood then; NaN: unvisited, or no bandit keeps it
    noise: float  # signal to noise at the end; NaN: unknown

    @property
    def share(self) -> np.ndarray:
        """[R, C] of the episodes; NaN where none began."""
        total = self.chosen.sum(0)
        return np.where(total > 0, self.chosen / np.maximum(total, 1), np.nan)

    @property
    def late_episodes(self) -> np.ndarray:
        """[R] over the last part of the run, which may have ended before others did."""
        last = int(np.flatnonzero(self.chosen.sum(0)).max(initial=0)) + 1
        found: np.ndarray = self.chosen[:, last - max(1, round(LATE * last)) : last].sum(1)
        return found

    @property
    def late(self) -> np.ndarray:
        """[R] their shares."""
        return self.late_episodes / max(1.0, self.late_episodes.sum())

    @property
    def has_favourite(self) -> bool:
        """Whether one region has more than twice its even share, and four standard errors more than it."""
        count, even = max(1.0, self.late_episodes.sum()), 1.0 / self.dimension.regions
        chance = even + 4.0 * np.sqrt(even * (1.0 - even) / count)
        return bool(self.late.max() > max(2.0 * even, chance))


def courses(runs: Sequence[Path]) -> list[list[Course]]:
    """Every dimension of Psi over each of several seeds, all cut at the same frames."""
    config = config_of(runs[0])
    space = build_space(config.behavior, config.population.size)
    told = [_reports(run, space.regions) for run in runs]
    columns = min(COLUMNS, *(len(reports) for reports in told))
    edges = np.linspace(0.0, max(reports[-1]["frames"] for reports in told), columns + 1)
    return [[_course(d, k, reports, edges) for k, d in enumerate(space.dimensions)] for reports in told]


def _reports(run: Path, regions: Sequence[int]) -> list[dict[str, Any]]:
    found = [report for report in read_metrics(RunDirectory(run).metrics) if _dimensions(report, regions)]
    if not found:
        raise UserError(
            f"'{run}' does not say which regions were chosen: "
            "it has not reported yet, or only its scores were kept."
        )
    return found


def _course(dimension: Dimension, k: int, reports: Sequence[dict[str, Any]], edges: np.ndarray) -> Course:
    shape = (dimension.regions, len(edges) - 1)
    chosen, returns = np.zeros(shape), np.full(shape, np.nan)
    for report in reports:
        entry = report["dimensions"][k]
        column = int(np.clip(np.searchsorted(edges, report["frames"], "left") - 1, 0, shape[1] - 1))
        chosen[:, column] += entry["chosen"]
        if entry.get("mean_return"):
            returns[:, column] = [np.nan if x is None else x for x in entry["mean_return"]]
    noise = reports[-1]["dimensions"][k].get("signal_to_noise")
    return Course(dimension, edges, chosen, returns, float("nan") if noise is None else float(noise))


def _dimensions(report: dict[str, Any], regions: Sequence[int]) -> bool:
    """Whether a report tells of this very space."""
    entries = report.get("dimensions")
    return (
        isinstance(entries, list)
        and len(entries) == len(regions)
        and all(_tells(entry, count) for entry, count in zip(entries, regions, strict=True))
    )


def _tells(entry: Any, count: int) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("signal_to_noise"), int | float | None):
        return False
    lists = [entry.get("chosen"), *([entry["mean_return"]] if entry.get("mean_return") else [])]
    return all(
        isinstance(x, list) and len(x) == count and all(v is None or isinstance(v, int | float) for v in x)
        for x in lists
    )


def region_name(dimension: Dimension, region: int) -> str:
    """``2.32 to 2.67`` in real values of tau or omega; a point by its weights."""
    low, high = dimension.value(region, 0.0), dimension.value(region, 1.0)
    if np.array_equal(low, high):
        return "(" + ", ".join(f"{x:g}" for x in low) + ")"
    return f"{low[0]:.2f} to {high[0]:.2f}"
