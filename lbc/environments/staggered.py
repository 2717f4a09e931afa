"""Copies that begin together and soon are in different places of their episodes.

Hundreds of copies of a game that lasts two minutes, all begun at once, end at once: what a learner sees for
millions of frames is one stretch of the game after the other, never the whole of it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from lbc.interfaces import Game
from lbc.types import EnvironmentSpec, EnvironmentStep


class Staggered:
    """Breaks one episode of every copy off, at a step of its own, drawn from 1..steps by the copy's seed.

    That copy's next row is the `first` of a new episode, and no end came before it: nothing was lost or
    won, a learner bootstraps, and nobody hears a score of half a game.  Every later episode is whole.
    """

    SAVED = ("_game", "_left")

    def __init__(self, game: Game, steps: int) -> None:
        self._game = game
        self._steps = steps
        self._left = np.zeros(game.num_envs, np.int64)  # [E] steps until it is broken off; 0 or less: it was
        self.spec: EnvironmentSpec = game.spec
        self.num_envs = game.num_envs

    @property
    def resumable(self) -> bool:
        return self._game.resumable

    def reset(self, seed: int) -> EnvironmentStep:
        draws = [np.random.default_rng(seed + copy).integers(self._steps) for copy in range(self.num_envs)]
        self._left = 1 + np.array(draws, np.int64)
        return self._game.reset(seed)

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        self._game.send(actions)

    def recv(self) -> EnvironmentStep:
        seen = self._game.recv()
        self._left -= 1
        ends_or_begins = seen.terminated | seen.truncated | seen.first
        broken_off = (self._left == 0) & ~ends_or_begins
        if not broken_off.any():
            return seen
        frame = self._game.begin_anew(broken_off)
        reward = np.where(broken_off, np.float32(0), seen.reward)
        first, lost = seen.first | broken_off, seen.lost & ~broken_off
        return dataclasses.replace(seen, frame=frame, reward=reward, first=first, lost=lost)

    def close(self) -> None:
        self._game.close()
