"""MinAtar: five Atari games on a 10 x 10 board.

Frames are 0 or 255, not 0 or 1, so that one rule (bytes are divided by 255) serves every image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbc.config import EnvironmentConfig
from lbc.environments.episodes import EpisodeClock, InTwoHalves, checked_actions, opening_step
from lbc.errors import UserError, missing_extra, nearest
from lbc.types import EnvironmentSpec, EnvironmentStep

PREFIX = "MinAtar/"

_MODULES = {
    "MinAtar/Asterix": "asterix",
    "MinAtar/Breakout": "breakout",
    "MinAtar/Freeway": "freeway",
    "MinAtar/Seaquest": "seaquest",
    "MinAtar/SpaceInvaders": "space_invaders",
}
IDS = list(_MODULES)
_ACTIONS = {"n": "noop", "l": "left", "u": "up", "r": "right", "d": "down", "f": "fire"}


class MinAtar(InTwoHalves):
    """Copies of one game, stepped one after the other: the games are Python, there is no batch to gain.

    Sticky actions reach across an episode's end, as they do in MinAtar itself.  Freeway ends after 2,500
    steps by its own rule and calls that game over; other games may never end under a good policy, and
    ``max_episode_steps`` truncates them.
    """

    resumable = True

    def __init__(self, config: EnvironmentConfig, num_envs: int) -> None:
        if config.id not in _MODULES:
            raise UserError(f"'{config.id}' is not a MinAtar game.{nearest(config.id, IDS)}")
        try:
            from minatar import Environment  # type: ignore[import-untyped]
        except ImportError as error:
            raise missing_extra("MinAtar", "minatar") from error
        name, sticky, ramping = _MODULES[config.id], config.minatar_sticky, config.minatar_ramping
        self._games = [Environment(name, sticky, ramping) for _ in range(num_envs)]
        game = self._games[0]
        height, width, channels = game.state_shape()
        actions = range(game.num_actions()) if config.full_action_space else game.minimal_action_set()
        self._action_set = np.array(actions)
        self.action_names = [_ACTIONS[game.env.action_map[action]] for action in actions]  # for people
        self._clock = EpisodeClock(num_envs, config.max_episode_steps)
        self.num_envs = num_envs
        self.spec = EnvironmentSpec(
            id=config.id,
            frame_shape=(channels, height, width),
            frame_dtype=np.uint8,
            num_actions=len(self._action_set),
        )

    def reset(self, seed: int) -> EnvironmentStep:
        for copy, game in enumerate(self._games):
            game.seed(seed + copy)
            game.last_action = 0  # MinAtar keeps it, and a sticky action would repeat it
            game.reset()
        self._clock.reset()
        return opening_step(self._draw())

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        actions = checked_actions(actions, self.num_envs, self.spec.num_actions)
        first = self._clock.restarting
        reward = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        game_actions = self._action_set[actions].tolist()
        for copy, (game, restart) in enumerate(zip(self._games, first.tolist(), strict=True)):
            if restart:
                game.reset()
            else:
                reward[copy], terminated[copy] = game.act(game_actions[copy])
        truncated = self._clock.tick(terminated)
        return EnvironmentStep(self._draw(), reward, terminated, truncated, first, np.zeros_like(first))

    def begin_anew(self, which: np.ndarray) -> np.ndarray:
        for copy in np.flatnonzero(which):
            self._games[copy].reset()
        self._clock.begin_anew(which)
        return self._draw()

    def close(self) -> None:
        pass

    def snapshot(self) -> dict[str, Any]:
        """Plain data: the games are numbers, lists, arrays and a random generator each."""
        games = [{"last_action": game.last_action, "board": dict(vars(game.env))} for game in self._games]
        return {"sent": self._sent, "clock": self._clock, "games": games}

    def resume(self, state: dict[str, Any]) -> None:
        self._sent = state["sent"]
        for game, saved in zip(self._games, state["games"], strict=True):
            game.last_action = saved["last_action"]
            vars(game.env).update(saved["board"])

    def _draw(self) -> np.ndarray:
        boards = np.array([game.state() for game in self._games])  # [E, 10, 10, C] bool
        return np.multiply(boards.transpose(0, 3, 1, 2), 255, dtype=np.uint8, order="C")
