"""Gymnasium environments that a user might bring: a step counter seen through different spaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Counter(gymnasium.Env):
    """Counts its steps and pays the action it was given; over after ``length`` steps."""

    def __init__(
        self,
        observation_space: spaces.Space,
        observe: Callable[[int, int], Any],
        action_space: spaces.Space | None = None,
        length: int = 5,
    ) -> None:
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Discrete(3)
        self._observe = observe
        self._length = length
        self._count = 0
        self._start = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self._count = 0
        self._start = int(self.np_random.integers(100))
        return self._observe(self._start, self._count), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self._count += 1
        over = self._count == self._length
        return self._observe(self._start, self._count), float(action), over, False, {}


def vector() -> Counter:
    space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    return Counter(space, lambda start, count: np.array([start, count], np.float64))


def image() -> Counter:
    """2 x 3 pixels of 4 channels: pixel (1, 2) of channel 3 holds 3, row 0 the start, the rest 0."""

    def observe(start: int, count: int) -> np.ndarray:
        pixels = np.zeros((2, 3, 4), np.uint8)
        pixels[0] = start + count
        pixels[1, 2, 3] = 3
        return pixels

    return Counter(spaces.Box(0, 255, (2, 3, 4), np.uint8), observe)


def grid() -> Counter:
    space = spaces.Box(-np.inf, np.inf, (2, 3), np.float64)
    return Counter(space, lambda start, count: np.full((2, 3), start + count, np.float64))


def numbered_from_minus_two() -> Counter:
    """Discrete observations and actions that do not start at 0."""
    return Counter(
        spaces.Discrete(6, start=-2), lambda start, count: np.int64(count - 2), spaces.Discrete(3, start=-1)
    )


def float_image() -> Counter:
    space = spaces.Box(0.0, 1.0, (2, 3, 4), np.float32)
    return Counter(space, lambda start, count: np.zeros((2, 3, 4), np.float32))


def dictionary() -> Counter:
    return Counter(spaces.Dict({"a": spaces.Discrete(2)}), lambda start, count: {"a": 0})


def continuous() -> Counter:
    return Counter(vector().observation_space, lambda start, count: np.zeros(2), spaces.Box(-1.0, 1.0, (1,)))


def two_buttons() -> Counter:
    return Counter(vector().observation_space, lambda start, count: np.zeros(2), spaces.MultiDiscrete([2, 2]))


def not_a_game() -> str:
    return "hello"


number = 5
