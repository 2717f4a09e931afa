"""Copies of a game that need not all be stepped: for evaluations, whose games end at different times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lbc.interfaces import VectorEnvironment
from lbc.types import EnvironmentStep


class Apart:
    """``count`` environments of one copy each, `at_once` of them in motion at the same time.

    ::

        environment.send_to(copies, actions)    # rising numbers of copies, an action for each
        seen = environment.recv()               # of these copies, in this order

    What is not sent to costs nothing.  Seeds are those of one environment with all copies.
    """

    resumable = False

    def __init__(self, single: Callable[[], VectorEnvironment], count: int, at_once: int) -> None:
        self._singles = [single() for _ in range(count)]
        self._at_once = at_once
        self._sent: list[tuple[VectorEnvironment, np.ndarray]] = []
        self.spec = self._singles[0].spec
        self.num_envs = count

    def reset(self, seed: int) -> EnvironmentStep:
        self._sent = []
        return EnvironmentStep.together([one.reset(seed + copy) for copy, one in enumerate(self._singles)])

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        self.send_to(np.arange(self.num_envs), actions)

    def send_to(self, copies: np.ndarray, actions: np.ndarray) -> None:
        actions = np.asarray(actions)
        if actions.shape != copies.shape:
            raise ValueError(f"actions must have shape {copies.shape}, got {actions.shape}")
        self._sent = [(self._singles[copy], actions[k : k + 1]) for k, copy in enumerate(copies)]
        for one, action in self._sent[: self._at_once]:
            one.send(action)

    def recv(self) -> EnvironmentStep:
        seen = []
        for k, (one, _) in enumerate(self._sent):
            seen.append(one.recv())
            for following, action in self._sent[k + self._at_once :][:1]:
                following.send(action)
        return EnvironmentStep.together(seen)

    def close(self) -> None:
        for one in self._singles:
            one.close()
