"""What every family does around a game: check actions, count steps, know who restarts."""

from __future__ import annotations

import numpy as np

from lbc.types import EnvironmentStep


def checked_actions(actions: np.ndarray, num_envs: int, num_actions: int) -> np.ndarray:
    """The actions as int64, or a ``ValueError``.

    Games differ in what they make of a wrong action: an index from the end, a no-op, or (the Atari
    emulator's worker threads) waiting for ever.  Two reductions per step make it an error everywhere.
    """
    actions = np.asarray(actions)
    if actions.shape != (num_envs,):
        raise ValueError(f"actions must have shape ({num_envs},), got {actions.shape}")
    if actions.dtype.kind not in "iu":
        raise ValueError(f"actions must be integers, got {actions.dtype}")
    if actions.min() < 0 or actions.max() >= num_actions:
        raise ValueError(f"actions must lie in 0..{num_actions - 1}, got {actions.min()}..{actions.max()}")
    return actions.astype(np.int64, copy=False)


def opening_step(frame: np.ndarray) -> EnvironmentStep:
    """What ``reset`` answers: frames [E, ...] before any action, so no reward and no end."""
    num_envs = len(frame)
    return EnvironmentStep(
        frame=frame,
        reward=np.zeros(num_envs, np.float32),
        terminated=np.zeros(num_envs, bool),
        truncated=np.zeros(num_envs, bool),
        first=np.ones(num_envs, bool),
        lost=np.zeros(num_envs, bool),
    )


class InTwoHalves:
    """``send`` and ``recv`` for a game that has nothing to do in between: it steps when asked."""

    _sent: np.ndarray | None = None

    def send(self, actions: np.ndarray) -> None:
        self._sent = actions

    def recv(self) -> EnvironmentStep:
        assert self._sent is not None, "send comes before recv"
        return self.step(self._sent)

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        raise NotImplementedError  # every game has its own


class EpisodeClock:
    """Next-step autoreset and the time limit, for E copies.

    ::

        first = clock.restarting               # these copies restart now, whatever their action
        ... step the others, restart these ...
        truncated = clock.tick(terminated)     # [E]; decides who restarts at the next step
    """

    SAVED = ("_elapsed", "restarting")

    def __init__(self, num_envs: int, limit: int) -> None:
        """``limit`` is in steps per episode; 0 is no limit."""
        self._limit = limit
        self._elapsed = np.zeros(num_envs, np.int64)
        self.restarting = np.ones(num_envs, bool)  # [E]

    def reset(self) -> None:
        """Every copy has just been restarted."""
        self._elapsed[:] = 0
        self.restarting = np.zeros_like(self.restarting)

    def begin_anew(self, which: np.ndarray) -> None:
        """These copies have just been restarted."""
        self._elapsed = np.where(which, 0, self._elapsed)
        self.restarting = self.restarting & ~which

    def tick(self, terminated: np.ndarray) -> np.ndarray:
        """Count a step; an end that is also game over is not a truncation."""
        self._elapsed = np.where(self.restarting, 0, self._elapsed + 1)
        truncated = (self._elapsed >= self._limit) & ~terminated & (self._limit > 0)
        self.restarting = terminated | truncated
        return truncated
