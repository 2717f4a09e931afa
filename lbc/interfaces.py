"""The protocols; each docstring is the loop that its users run."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lbc.types import EnvironmentSpec, EnvironmentStep, ProgressSnapshot


class VectorEnvironment(Protocol):
    """E copies of one game that step together.

    ::

        step = environment.reset(seed)              # every `first` is true
        while True:
            step = environment.step(actions)        # [E] integers
            # step.frame       newest frame of each copy (frames are stacked by whoever looks)
            # step.reward      raw, never clipped: shaping belongs to a policy
            # step.terminated  the game ended: no value beyond
            # step.truncated   the clock ended it: bootstrap from step.frame, the final observation
            # step.first       the copy restarted itself: its action was ignored, its reward is 0
            # step.lost        a lost life counts as an end of value (`environment.life_information`)

    Autoreset is *next-step*: the step after an end restarts that copy, whatever the action.  Final
    observations are therefore ordinary rows.  The same seed and the same actions give the same
    steps; copy ``e`` is seeded with ``seed + e``.  An end is never both terminated and truncated
    (termination wins).

    ``send`` and ``recv`` are ``step`` in two halves: a game with threads of its own plays in between,
    while somebody learns.

    A ``resumable`` game can be saved and go on later as if nothing had happened
    (`lbc.parameters.snapshot`); others restart their episodes.
    """

    spec: EnvironmentSpec
    num_envs: int

    @property
    def resumable(self) -> bool: ...

    def reset(self, seed: int) -> EnvironmentStep: ...

    def step(self, actions: np.ndarray) -> EnvironmentStep: ...

    def send(self, actions: np.ndarray) -> None: ...

    def recv(self) -> EnvironmentStep: ...

    def close(self) -> None: ...


class Game(VectorEnvironment, Protocol):
    """What every family is: it can also break off the episodes of some copies, between two steps.

    ::

        frame = game.begin_anew(which)      # [E] booleans; what all copies show now

    Nobody hears how those episodes would have ended (`lbc.environments.staggered`).
    """

    def begin_anew(self, which: np.ndarray) -> np.ndarray: ...


class Reporter(Protocol):
    """Whoever shows or keeps what a run says; handed in by the command line, called by a runtime.

    ::

        reporter.start(header)              # once: facts about the run (category name, updates planned, ...)
        while training:
            reporter.progress(snapshot)     # a few times a second, cheap
            reporter.report(metrics)        # one object per report: goes to metrics.jsonl
        reporter.finish(summary)            # once, also after Ctrl-C

    A run that is resumed first calls ``rewind`` with the ``mark`` that its checkpoint holds: reports that
    came after it are forgotten, because they will come again.
    """

    def start(self, header: dict[str, Any]) -> None: ...

    def progress(self, snapshot: ProgressSnapshot) -> None: ...

    def report(self, metrics: dict[str, Any]) -> None: ...

    def finish(self, summary: dict[str, Any]) -> None: ...

    def mark(self) -> int: ...

    def rewind(self, mark: int) -> None: ...
