"""Numbers behind a figure: curves of several seeds on one grid of frames, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbc.reporting.rundir import RunDirectory, read_metrics

FEW = 3  # seeds up to which an interval is simply lowest to highest
FINAL_SHARE = 0.1  # a final score is the mean over this last part of the frames
_GRID_POINTS = 200
_RESAMPLES = 2000


@dataclass(frozen=True)
class Curve:
    """One run: the score at each report, and what it took."""

    frames: np.ndarray  # [R]
    scores: np.ndarray  # [R]
    seconds: float

    @property
    def final(self) -> float:
        """Mean score over the last tenth of the frames."""
        return float(self.scores[self.frames >= (1.0 - FINAL_SHARE) * self.frames[-1]].mean())

    @property
    def area(self) -> float:
        """Mean height of the curve over frames: a fast learner's is near its final score."""
        span = self.frames[-1] - self.frames[0]
        return float(np.trapezoid(self.scores, self.frames) / span) if span > 0 else float(self.scores[-1])

    @property
    def frames_per_second(self) -> float:
        return float(self.frames[-1] / self.seconds) if self.seconds > 0 else float("nan")


def load(directory: Path, key: str = "score_mean") -> Curve | None:
    """The curve of a run directory; None before an episode has ended."""
    reports = read_metrics(RunDirectory(directory).metrics)
    known = [(report["frames"], report[key]) for report in reports if report.get(key) is not None]
    if not known:
        return None
    table = np.array(known, dtype=np.float64)
    return Curve(table[:, 0], table[:, 1], float(reports[-1].get("seconds") or 0.0))


def load_all(directories: Sequence[Path], key: str = "score_mean") -> list[Curve]:
    return [curve for curve in (load(directory, key) for directory in directories) if curve is not None]


@dataclass(frozen=True)
class Band:
    """The mean of several curves where all of them exist, and an interval around it."""

    frames: np.ndarray  # [G]
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def band(curves: Sequence[Curve], smooth: int = 1) -> Band:
    """``curves``, interpolated on a common grid; ``smooth`` reports are averaged around each point."""
    start, stop = max(c.frames[0] for c in curves), min(c.frames[-1] for c in curves)
    grid = np.linspace(start, max(start, stop), _GRID_POINTS)
    scores = np.stack([np.interp(grid, c.frames, smoothed(c.scores, smooth)) for c in curves])
    low, high = interval(scores)
    return Band(grid, scores.mean(0), low, high)


def interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[S, ...] -> two of [...]: lowest and highest for few seeds, else a bootstrap 95% of the mean."""
    count = len(samples)
    if count <= FEW:
        return samples.min(0), samples.max(0)
    draws = np.random.default_rng(0).integers(0, count, (_RESAMPLES, count))
    weights = np.stack([np.bincount(draw, minlength=count) for draw in draws]) / count  # [D, S]
    low, high = np.percentile(np.tensordot(weights, samples, 1), [2.5, 97.5], axis=0)
    return low, high


def interval_name(count: int) -> str:
    return "lowest to highest seed" if count <= FEW else "bootstrap 95% interval of the mean"


def smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Centred running mean; at the ends over what there is."""
    kernel = np.ones(min(window, len(values)))
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")
