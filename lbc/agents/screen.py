"""The screen of an Atari game in colour, for films: a twin of the game that the agent plays.

The agent's own emulator gives small grey frames only.  Another one with the same seed and the same actions
goes through the same episode; should it ever not, films show what the agent sees.
"""

from __future__ import annotations

import numpy as np

from lbc.config import EnvironmentConfig
from lbc.types import EnvironmentStep

HEIGHT, WIDTH = 210, 160


class Screen:
    """One emulator that plays along."""

    def __init__(self, config: EnvironmentConfig) -> None:
        from lbc.environments.atari import emulators

        self._emulator = emulators(config, 1, 1, HEIGHT, WIDTH, grey=False)
        self._agrees = True

    def reset(self, seed: int) -> np.ndarray:
        """The first picture: [H, W, 3] bytes."""
        frame, _ = self._emulator.reset(seed=seed)
        return np.array(frame).reshape(HEIGHT, WIDTH, 3)

    def step(self, actions: np.ndarray, seen: EnvironmentStep) -> np.ndarray | None:
        """The next picture; none from the first step on that differs from the one that the agent has seen."""
        frame, reward, terminated, truncated, _ = self._emulator.step(actions)
        over = bool(terminated[0] or truncated[0])
        there = bool(seen.terminated[0] or seen.truncated[0])
        self._agrees = self._agrees and reward[0] == seen.reward[0] and over == there
        return np.array(frame).reshape(HEIGHT, WIDTH, 3) if self._agrees else None


def screen_of(config: EnvironmentConfig) -> Screen | None:
    """Of an Atari game; other games have no other picture than what the agent sees."""
    return Screen(config) if config.id.startswith("ALE/") else None
