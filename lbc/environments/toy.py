"""Toy games with known optimal values, whole batches at a time in NumPy.

They are fast enough (about a million steps a second) that a learning test is bound by the learner.
"""

from __future__ import annotations

import numpy as np

from lbc.config import EnvironmentConfig
from lbc.environments.episodes import EpisodeClock, InTwoHalves, checked_actions, opening_step
from lbc.types import EnvironmentSpec, EnvironmentStep

IDS = ["catch", "deepsea"]

_MAPPING_SEED = 20_190_809  # the sea is one fixed place: it depends on the depth alone


class _ToyEnvironment(InTwoHalves):
    """The loop that toy games share; a game says how a copy starts, moves and looks."""

    resumable = True
    SAVED: tuple[str, ...] = ("_sent", "_clock", "_seed", "_episode")

    def __init__(self, spec: EnvironmentSpec, num_envs: int, limit: int) -> None:
        self.spec = spec
        self.num_envs = num_envs
        self._clock = EpisodeClock(num_envs, limit)
        self._copies = np.arange(num_envs)
        self._seed = np.zeros(num_envs, np.uint64)
        self._episode = np.zeros(num_envs, np.uint64)

    def reset(self, seed: int) -> EnvironmentStep:
        self._seed = np.uint64(int(seed) % 2**64) + self._copies.astype(np.uint64)
        self._episode[:] = 0
        self._clock.reset()
        self._restart(np.ones(self.num_envs, bool))
        return opening_step(self._draw())

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        actions = checked_actions(actions, self.num_envs, self.spec.num_actions)
        first = self._clock.restarting
        reward, terminated = self._advance(actions)
        if first.any():  # their move was computed with the rest and is thrown away here
            reward[first] = 0.0
            terminated[first] = False
            self._episode += first
            self._restart(first)
        truncated = self._clock.tick(terminated)
        return EnvironmentStep(self._draw(), reward, terminated, truncated, first, np.zeros_like(first))

    def begin_anew(self, which: np.ndarray) -> np.ndarray:
        self._episode += which
        self._restart(which)
        self._clock.begin_anew(which)
        return self._draw()

    def close(self) -> None:
        pass

    def _random_below(self, high: int) -> np.ndarray:
        """[E] one draw per copy from (seed, episode): a generator per copy, without the generators."""
        return (_mix(_mix(self._seed) + self._episode) % np.uint64(high)).astype(np.int64)

    def _restart(self, who: np.ndarray) -> None:
        raise NotImplementedError

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _draw(self) -> np.ndarray:
        raise NotImplementedError


def _mix(bits: np.ndarray) -> np.ndarray:
    """splitmix64 (Steele et al. 2014): neighbouring integers become independent-looking ones."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class Catch(_ToyEnvironment):
    """A ball falls one row per step; be under it when it lands (+1) or not (-1).

    The ball starts in a random column of the top row, the paddle in the middle of the bottom row, so an
    episode lasts ``rows - 1`` steps and its only reward comes at its end.  Actions 0, 1, 2 are left, stay,
    right.  Further actions do nothing: with many of them the useful ones are rare.  Both objects are
    drawn as 1, in one cell when they meet.
    """

    SAVED = (*_ToyEnvironment.SAVED, "_ball_row", "_ball_column", "_paddle")

    def __init__(self, config: EnvironmentConfig, num_envs: int) -> None:
        self._rows, self._columns = config.catch_rows, config.catch_columns
        spec = EnvironmentSpec(
            id=config.id,
            frame_shape=(1, self._rows, self._columns),
            frame_dtype=np.float32,
            num_actions=config.catch_actions,
        )
        super().__init__(spec, num_envs, config.max_episode_steps)
        self._move = np.zeros(config.catch_actions, np.int64)
        self._move[0], self._move[2] = -1, 1
        self._ball_row = np.zeros(num_envs, np.int64)
        self._ball_column = np.zeros(num_envs, np.int64)
        self._paddle = np.zeros(num_envs, np.int64)

    @property
    def optimal_value(self) -> float:
        """Expected score of an episode under the best policy: every ball can be caught."""
        return 1.0

    def _restart(self, who: np.ndarray) -> None:
        self._ball_row[who] = 0
        self._ball_column[who] = self._random_below(self._columns)[who]
        self._paddle[who] = self._columns // 2

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._paddle = np.clip(self._paddle + self._move[actions], 0, self._columns - 1)
        self._ball_row += 1
        landed = self._ball_row == self._rows - 1
        caught = self._paddle == self._ball_column
        reward = np.where(landed, np.where(caught, 1.0, -1.0), 0.0).astype(np.float32)
        return reward, landed

    def _draw(self) -> np.ndarray:
        frame = np.zeros((self.num_envs, *self.spec.frame_shape), np.float32)
        frame[self._copies, 0, self._ball_row, self._ball_column] = 1.0
        frame[self._copies, 0, self._rows - 1, self._paddle] = 1.0
        return frame


class DeepSea(_ToyEnvironment):
    """A diver sinks one row per step; the treasure needs ``depth`` moves to the right in a row.

    Each move right costs 0.01 / depth, the treasure in the bottom-right corner is worth 1, and which of
    the two actions means right differs from cell to cell.  Uniform play finds it once in 2^depth
    episodes: a test of exploration, not of control.  The final observation, below the sea, is empty.
    """

    SAVED = (*_ToyEnvironment.SAVED, "_row", "_column")

    def __init__(self, config: EnvironmentConfig, num_envs: int) -> None:
        self._depth = config.deepsea_depth
        spec = EnvironmentSpec(
            id=config.id,
            frame_shape=(1, self._depth, self._depth),
            frame_dtype=np.float32,
            num_actions=2,
        )
        super().__init__(spec, num_envs, config.max_episode_steps)
        generator = np.random.default_rng(_MAPPING_SEED)
        self._right = generator.integers(0, 2, (self._depth, self._depth))  # the action that means right
        self._row = np.zeros(num_envs, np.int64)
        self._column = np.zeros(num_envs, np.int64)

    @property
    def optimal_value(self) -> float:
        """Score of the episode that always moves right."""
        return 0.99

    def optimal_actions(self) -> np.ndarray:
        """[E] the action that means right where each copy is now (any action at an episode's end)."""
        return self._right[np.minimum(self._row, self._depth - 1), self._column]

    def _restart(self, who: np.ndarray) -> None:
        self._row[who] = 0
        self._column[who] = 0

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        right = actions == self.optimal_actions()
        last = self._depth - 1
        treasure = right & (self._row == last) & (self._column == last)
        reward = treasure.astype(np.float32) - right.astype(np.float32) * np.float32(0.01 / self._depth)
        self._column = np.clip(self._column + np.where(right, 1, -1), 0, last)
        self._row += 1
        return reward, self._row == self._depth

    def _draw(self) -> np.ndarray:
        frame = np.zeros((self.num_envs, *self.spec.frame_shape), np.float32)
        at_sea = np.flatnonzero(self._row < self._depth)
        frame[at_sea, 0, self._row[at_sea], self._column[at_sea]] = 1.0
        return frame
