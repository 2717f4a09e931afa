"""Where the time of a run's main thread goes."""

from __future__ import annotations

import time

PARTS = ("environments", "inference", "storage", "learners", "reports")


class Clock:
    """Every `lap` gives the time since the one before it to a part.

    environments  waiting for frames
    inference     all policies, mixture, sampling, sending actions
    storage       into the buffer, and batches out of it
    learners      learning, or waiting for those that learn
    reports       everything else: metrics, checkpoints, progress
    """

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._at = time.perf_counter()

    def lap(self, part: str, of_which: tuple[str, float] | None = None) -> None:
        now = time.perf_counter()
        self._seconds[part] += now - self._at
        self._at = now
        if of_which is not None:
            other, seconds = of_which
            self._seconds[other] += seconds
            self._seconds[part] -= seconds

    def shares(self) -> dict[str, float]:
        """Shares of the time since the last call, 1 in all."""
        total = sum(self._seconds.values()) or 1.0
        found = {part: seconds / total for part, seconds in self._seconds.items()}
        self._seconds = dict.fromkeys(PARTS, 0.0)
        return found
