"""Where every run of a queue stands, read from its directory, and how long the rest may take."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lbc.pages.history import parsed
from lbc.pages.numbers import known
from lbc.reporting import RunDirectory
from lbc.scores import find_game, hns
from lbc.studies.run import Run

WAITING, RUNNING, EVALUATING = "waiting", "running", "evaluating"
DONE, STOPPED, FAILED = "done", "stopped", "failed"
ACTIVE = (RUNNING, EVALUATING)
WORDS = (*ACTIVE, FAILED, STOPPED, DONE, WAITING)  # in the order of what somebody wants to see


@dataclass(frozen=True)
class State:
    """One run at one moment."""

    run: Run
    word: str = WAITING  # one of WORDS
    frames: int = 0
    seconds: float = 0.0  # of training, in all sittings
    score: float | None = None  # the last one reported
    best: float | None = None  # of those reported
    speed: float | None = None  # frames per second at the last report

    @property
    def share(self) -> float:
        """Of the budget that is spent, 0..1."""
        if self.word in (DONE, EVALUATING):
            return 1.0
        minutes = self.run.minutes
        return min(1.0, self.seconds / (60.0 * minutes) if minutes else self.frames / self.run.frames)

    @property
    def human_normalised(self) -> float | None:
        """The score in percent of a person's, where the game has references."""
        game = find_game(self.run.variant.task) if self.run.variant.task else None
        if game is None or self.score is None:
            return None
        return float(hns(self.score, game.random, game.human))


class Watch:
    """Follows one run; reads only what is new."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._metrics = RunDirectory(run.path).metrics
        self._forget()

    def _forget(self) -> None:
        self._position, self._newest, self._best = 0, dict[str, Any](), -math.inf

    def state(self, word: str) -> State:
        """As its directory tells, but for the word: who starts a run knows whether it runs."""
        self._read()
        newest = self._newest
        return State(
            self._run,
            word,
            int(newest.get("frames", 0)),
            _first(newest.get("seconds")) or 0.0,
            _first(newest.get("score_mean")),
            _first(self._best),
            _first(newest.get("frames_per_second")),
        )

    def _read(self) -> None:
        try:
            with self._metrics.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._position:  # a resumed run has cut it
                    self._forget()
                file.seek(self._position)
                whole, newline, _ = file.read().rpartition(b"\n")
        except OSError:  # it has not begun, or begins again
            self._forget()
            return
        self._position += len(whole) + len(newline)
        for report in map(parsed, whole.splitlines()):
            if report is not None:
                self._newest = report
                self._best = max([self._best, *known([report.get("score_mean")])])


def _first(value: Any) -> float | None:
    return next(iter(known([value])), None)


def word_of(run: Run) -> str:
    """Of a run that nobody is at work on."""
    if run.finished():
        return DONE
    if run.failure.exists():
        return FAILED
    return STOPPED if run.saved() else WAITING


def grouped(states: Sequence[State]) -> list[list[State]]:
    """Those of one task and label together, in the order of the queue."""
    groups: dict[tuple[str, str], list[State]] = {}
    for state in states:
        groups.setdefault((state.run.variant.task, state.run.variant.label), []).append(state)
    return list(groups.values())


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def speed_of(states: Iterable[State]) -> float:
    """Frames per second of all that run, together."""
    return sum(state.speed or 0.0 for state in states if state.word == RUNNING)


def seconds_left(states: Sequence[State], jobs: int = 1) -> float | None:
    """Of training, for all of them, ``jobs`` at a time; None where no speed is known yet.

    A run that has not begun is expected to be as fast as the others of its label, or as all others.
    """
    labels: dict[str, list[float]] = {}
    for state in states:
        if state.seconds > 0 and state.frames > 0:
            labels.setdefault(state.run.variant.label, []).append(state.frames / state.seconds)
    everybody = [speed for speeds in labels.values() for speed in speeds]
    lefts = []
    for state in states:
        run, share = state.run, state.share
        if share >= 1.0:
            continue
        if run.minutes:
            lefts.append(60.0 * run.minutes * (1.0 - share))
            continue
        speeds = labels.get(run.variant.label, everybody)
        if state.seconds > 0 and state.frames > 0:
            speeds = [state.frames / state.seconds]
        if not speeds:
            return None
        lefts.append((run.frames - state.frames) * len(speeds) / sum(speeds))
    return max(sum(lefts) / jobs, max(lefts, default=0.0))
