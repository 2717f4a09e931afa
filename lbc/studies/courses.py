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
    def late(self) -> np.ndarray:
        """[R] share over the last part of the run."""
        chosen = self.chosen[:, -max(1, round(LATE * self.chosen.shape[1])) :].sum(1)
        return chosen / max(1.0, chosen.sum())


def courses(run: Path) -> list[Course]:
    """Every dimension of Psi over one run."""
    config = config_of(run)
    space = build_space(config.behavior, config.population.size)
    reports = [r for r in read_metrics(RunDirectory(run).metrics) if _dimensions(r, space.regions)]
    if not reports:
        raise UserError(
            f"'{run}' does not say which regions were chosen: "
            "it has not reported yet, or only its scores were kept."
        )
    frames = np.array([report["frames"] for report in reports], dtype=np.float64)
    columns = min(COLUMNS, len(reports))
    edges = np.linspace(0.0, frames[-1], columns + 1)
    place = np.clip(np.searchsorted(edges, frames, "left") - 1, 0, columns - 1)
    found = []
    for k, dimension in enumerate(space.dimensions):
        chosen = np.zeros((dimension.regions, columns))
        returns = np.full((dimension.regions, columns), np.nan)
        for column, report in zip(place, reports, strict=True):
            entry = report["dimensions"][k]
            chosen[:, column] += entry["chosen"]
            if entry.get("mean_return"):
                returns[:, column] = [np.nan if x is None else x for x in entry["mean_return"]]
        noise = reports[-1]["dimensions"][k].get("signal_to_noise")
        found.append(Course(dimension, edges, chosen, returns, float("nan") if noise is None else noise))
    return found


def _dimensions(report: dict[str, Any], regions: Sequence[int]) -> bool:
    """Whether a report tells of this very space."""
    entries = report.get("dimensions")
    return (
        isinstance(entries, list)
        and len(entries) == len(regions)
        and all(_tells(entry, count) for entry, count in zip(entries, regions, strict=True))
    )


def _tells(entry: Any, count: int) -> bool:
    if not isinstance(entry, dict):
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
