"""A picture over training in bounded memory, however many reports there are."""

from __future__ import annotations

import numpy as np

BINS = 60  # columns of a picture over training, and at most twice as many while reading


class Binned:
    """Sums of vectors along a run; when there are too many bins, neighbours become one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._each = 1  # reports in a full bin
        self._reports = 0
        self._frames: list[float] = []  # where each bin ends
        self._sums: list[np.ndarray] = []

    def add(self, frames: float, vector: np.ndarray) -> None:
        if self._reports % self._each == 0:
            self._frames.append(frames)
            self._sums.append(np.zeros(self.size))
        self._reports += 1
        self._frames[-1] = frames
        self._sums[-1] += vector
        if len(self._sums) > 2 * BINS and self._reports % self._each == 0:
            self._halve()

    def _halve(self) -> None:
        pairs = range(0, len(self._sums), 2)
        self._sums = [np.sum(self._sums[i : i + 2], axis=0) for i in pairs]
        self._frames = [self._frames[min(i + 1, len(self._frames) - 1)] for i in pairs]
        self._each *= 2
        self._reports = self._each * len(self._sums)  # the last bin counts as full

    def on(self, grid: np.ndarray) -> np.ndarray:
        """The sums between the points of a rising grid: [G] -> [G - 1, size]; each bin is spread evenly."""
        ends = np.array([0.0, *self._frames])
        cumulative = np.concatenate([np.zeros((1, self.size)), np.cumsum(self._sums, axis=0)])
        at = np.stack([np.interp(grid, ends, values) for values in cumulative.T], axis=1)
        return np.diff(at, axis=0)
