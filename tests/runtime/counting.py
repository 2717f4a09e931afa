"""A game that counts: every observation says which episode of which copy it belongs to, and which step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Counting(gymnasium.Env[np.ndarray, int]):
    """Observation [seed, episode, step]; the reward of step k is k; episodes last 3 to 7 steps."""

    observation_space = gymnasium.spaces.Box(0, 1e6, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self) -> None:
        self.number, self.episode, self.now = 0, -1, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.number = self.number if seed is None else seed
        self.episode, self.now = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.now += 1
        over = self.now == 3 + (self.number + self.episode) % 5
        return (
            self._seen(),
            float(self.now),
            over and self.episode % 2 == 0,
            over and self.episode % 2 == 1,
            {},
        )

    def _seen(self) -> np.ndarray:
        return np.array([self.number, self.episode, self.now], dtype=np.float32)


def make() -> Counting:
    return Counting()
