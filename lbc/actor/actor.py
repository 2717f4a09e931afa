"""The actor: plays E environments with the behavior mu, and hears how each episode ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from lbc.actor.mind import Mind
from lbc.interfaces import VectorEnvironment
from lbc.types import EnvironmentStep, Row


class PsiSource(Protocol):
    """Whoever chooses psi at the start of an episode and hears its score at the end."""

    def start(self, index: int) -> np.ndarray: ...

    def end(self, index: int, score: float | None) -> None: ...


@dataclass(frozen=True)
class EpisodeEnd:
    index: int  # environment, counted within its actor
    score: float  # raw, undiscounted
    steps: int
    truncated: bool


@dataclass(frozen=True)
class ActorStep:
    """One step of all environments."""

    seen: EnvironmentStep  # what came from the environments
    row: Row  # the same with what was done, on the device
    state: Tensor  # [N, 2, E, units] before the step
    value: np.ndarray  # [N, W] every policy's V of what the first W environments saw
    entropy: float  # of mu, mean over the environments that really acted; NaN if none did
    responsibility: np.ndarray  # [M] mean share of each component in the actions taken
    ended: list[EpisodeEnd]  # episodes whose final frame this row holds
    waited: float  # seconds until the environments had played


class Actor:
    """::

    while True:
        step = actor.step()          # receive, think, send
        buffer.append(step.row, step.state)
        ...                          # the environments play on while somebody learns
    """

    def __init__(
        self,
        environment: VectorEnvironment,
        mind: Mind,
        controller: PsiSource,
        seed: int,
        first_env: int = 0,  # number of the first environment, as the controller counts them
    ) -> None:
        self.environment = environment
        self.mind = mind
        self._controller = controller
        self._first_env = first_env
        count = environment.num_envs
        self._opening: EnvironmentStep | None = environment.reset(seed)
        self._psi = np.zeros((count, mind.psi_size))
        self._score = np.zeros(count)
        self._playing = np.zeros(count, dtype=bool)  # episodes whose end the controller waits for
        self._steps = np.zeros(count, dtype=np.int64)

    def step(self) -> ActorStep:
        asked = time.perf_counter()
        seen = self._opening or self.environment.recv()
        self._opening = None
        waited = time.perf_counter() - asked
        ended = self._follow_episodes(seen)
        over = seen.terminated | seen.truncated
        valueless = seen.terminated | seen.lost  # beyond it
        numbers = np.column_stack([seen.first, seen.reward, valueless, ~over, self._psi])
        thought = self.mind.think(seen.frame, numbers)
        self.environment.send(thought.actions)
        return ActorStep(
            seen,
            thought.row,
            thought.state,
            value=thought.value,
            entropy=thought.entropy,
            responsibility=thought.responsibility,
            ended=ended,
            waited=waited,
        )

    def _follow_episodes(self, seen: EnvironmentStep) -> list[EpisodeEnd]:
        """Scores what ended, asks the controller for what begins."""
        self._score += seen.reward
        self._steps += 1
        ended = []
        for index in np.flatnonzero(seen.terminated | seen.truncated):
            score = float(self._score[index])
            ended.append(EpisodeEnd(int(index), score, int(self._steps[index]), bool(seen.truncated[index])))
            self._controller.end(self._first_env + int(index), score)
            self._playing[index] = False
        for index in np.flatnonzero(seen.first):
            if self._playing[index]:  # its process was replaced: half an episode says nothing
                self._controller.end(self._first_env + int(index), None)
            self._playing[index] = True
            self._psi[index] = self._controller.start(self._first_env + int(index))
            self._score[index] = 0.0
            self._steps[index] = 0
        return ended

    def snapshot(self) -> dict[str, Any]:
        numbers = {"psi": self._psi, "score": self._score, "steps": self._steps, "playing": self._playing}
        return {"mind": self.mind, **numbers}

    def resume(self, state: dict[str, Any]) -> None:
        """Goes on in the middle of the episodes; the environment must have been resumed, too."""
        self._psi, self._score, self._steps = state["psi"], state["score"], state["steps"]
        self._playing = state["playing"]
        self._opening = None  # a step has been sent

    def restart(self, seed: int) -> None:
        """Begins new episodes in all environments; nobody hears of those in flight."""
        self._opening = self.environment.reset(seed)
        self._playing[:] = False

    def keep(self, which: np.ndarray) -> None:
        """Goes on with these environments alone; from now on `environment` must speak of no others."""
        self.mind.keep(which)
        self._psi, self._score, self._steps = self._psi[which], self._score[which], self._steps[which]
        self._playing = self._playing[which]

    def episode_ages(self) -> np.ndarray:
        """Steps that each episode in flight has lasted: [E]."""
        return self._steps.copy()
