"""A game whose episodes, rewards and frames are known in advance."""

from __future__ import annotations

import numpy as np

from lbc.types import EnvironmentSpec, EnvironmentStep


class Scripted:
    """E copies; copy e plays episodes of 3 + e steps, in turn game over and time limit.

    Frames are random; the reward of a step is its number within the episode.  With `lives` one is lost, and
    counts as an end of value, at the second step.  It plays inside `send`, as
    a game with threads does, and draws into one and the same memory: an old frame is gone by then.
    """

    def __init__(
        self,
        num_envs: int = 3,
        frame_stack: int = 1,
        image: bool = True,
        shortest: int = 3,
        lives: bool = False,
    ) -> None:
        shape, kind = ((2, 3, 3), np.uint8) if image else ((4,), np.float32)
        self.spec = EnvironmentSpec("scripted", shape, kind, num_actions=3, frame_stack=frame_stack)
        self.num_envs = num_envs
        self.lives = lives
        self.actions: list[np.ndarray] = []
        self._lengths = shortest + np.arange(num_envs)
        self._rng = np.random.default_rng(0)
        self._frame = np.zeros((num_envs, *shape), kind)
        self._age = np.zeros(num_envs, np.int64)
        self._episode = np.zeros(num_envs, np.int64)

    def reset(self, seed: int) -> EnvironmentStep:
        self._draw()
        no = np.zeros(self.num_envs, bool)
        return EnvironmentStep(self._frame, np.zeros(self.num_envs, np.float32), no, no, ~no, no)

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        self.actions.append(actions.copy())
        first = self._age == self._lengths
        self._episode += first
        self._age = np.where(first, 0, self._age + 1)
        end = self._age == self._lengths
        terminated = end & (self._episode % 2 == 0)
        self._draw()
        reward = self._age.astype(np.float32)
        lost = self.lives & (self._age == 2) & ~end
        return EnvironmentStep(self._frame, reward, terminated, end & ~terminated, first, lost)

    def send(self, actions: np.ndarray) -> None:
        self._answer = self.step(actions)

    def recv(self) -> EnvironmentStep:
        return self._answer

    def close(self) -> None:
        pass

    def _draw(self) -> None:
        if self._frame.dtype == np.uint8:
            self._frame[:] = self._rng.integers(0, 256, self._frame.shape)
        else:
            self._frame[:] = self._rng.normal(size=self._frame.shape)
