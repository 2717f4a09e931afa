"""Games that misbehave, each in one way; all others of their habits are good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

GOOD_STEPS = 30  # before the misbehavior begins, reset or not


class Game(gymnasium.Env[Any, int]):
    """Observes its own step count; an episode lasts ten steps, and every step pays 1."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, misbehave: Callable[[Any, float, bool], tuple[Any, Any, bool]]) -> None:
        self._misbehave = misbehave
        self._steps = 0
        self._all_steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._all_steps += 1
        seen = np.full(3, self._steps / 10, np.float32)
        answer = seen, 1.0, self._steps == 10
        observation, reward, over = answer if self._all_steps <= GOOD_STEPS else self._misbehave(*answer)
        return observation, reward, over, False, {}


def _raise(observation: Any, reward: float, over: bool) -> Any:
    raise ZeroDivisionError("the paddle has no width")


def raises() -> Game:
    return Game(_raise)


def nan_reward() -> Game:
    return Game(lambda o, r, over: (o, float("nan"), over))


def reward_beyond_float32() -> Game:
    return Game(lambda o, r, over: (o, 1e39, over))


def reward_of_text() -> Game:
    return Game(lambda o, r, over: (o, "much", over))


def nan_observation() -> Game:
    return Game(lambda o, r, over: (o * np.nan, r, over))


def infinite_observation() -> Game:
    return Game(lambda o, r, over: (o + np.inf, r, over))


def wrong_shape() -> Game:
    return Game(lambda o, r, over: (o[:2], r, over))


def wrong_dtype() -> Game:
    return Game(lambda o, r, over: (np.array(["a", "b", "c"]), r, over))


def double_precision() -> Game:
    return Game(lambda o, r, over: (o.astype(np.float64), r, over))


def never_ends() -> Game:
    return Game(lambda o, r, over: (o, r, False))


def ends_at_once() -> Game:
    return Game(lambda o, r, over: (o, r, True))


def reward_of_a_billion() -> Game:
    return Game(lambda o, r, over: (o, 1e9, over))


def fails_in_its_factory() -> Game:
    raise KeyError("level 3")
