"""Does V know what is coming?  Explained variance of V against Monte-Carlo shaped returns."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch

from lbc.behavior.population import PolicyHyperParameters


class ReturnMonitor:
    """Follows whole episodes of a few environments: V_i at every step, then the return that came.

    A return ends with the game, or with a life that counts as an end.  What is truncated has none, so it is
    left out.
    """

    SAVED = ("_rewards", "_values", "_pairs")

    def __init__(self, population: tuple[PolicyHyperParameters, ...], envs: int, window: int = 2000) -> None:
        self._population = population
        self._rewards: list[list[float]] = [[] for _ in range(envs)]
        self._values: list[list[np.ndarray]] = [[] for _ in range(envs)]
        self._pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=window)  # (V, return), each [N]

    def watch(
        self,
        reward: np.ndarray,
        first: np.ndarray,
        lost: np.ndarray,
        value: np.ndarray,
        ended: dict[int, bool],
        progress: float = 1.0,
    ) -> None:
        """reward, first, lost: [E];  value: [N, W];  ended: environment -> truncated;
        progress: of the run, for the discounts of today."""
        for e in range(len(self._rewards)):
            if first[e]:
                self._rewards[e], self._values[e] = [], []
            else:
                self._rewards[e].append(float(reward[e]))
            self._values[e].append(value[:, e])
            if e in ended and not ended[e]:
                self._close(e, progress)
            elif e not in ended and lost[e]:  # value ends here, and begins anew with this very observation
                self._close(e, progress)
                self._rewards[e], self._values[e] = [], [value[:, e]]

    def _close(self, e: int, progress: float) -> None:
        rewards = torch.tensor(self._rewards[e], dtype=torch.float64)
        returns = np.zeros((len(self._population), len(rewards)))
        for i, policy in enumerate(self._population):
            shaped, total, discount = policy.shape(rewards).numpy(), 0.0, policy.discount_at(progress)
            for t in reversed(range(len(shaped))):
                total = shaped[t] + discount * total
                returns[i, t] = total
        stride = max(1, len(rewards) // 200)  # neighbours say the same; keep the window diverse
        for t in range(0, len(rewards), stride):
            self._pairs.append((self._values[e][t], returns[:, t]))

    def explained_variance(self) -> list[float | None]:
        """Per policy: 1 - Var(return - V) / Var(return) over the window."""
        if len(self._pairs) < 2:
            return [None] * len(self._population)
        values = np.array([v for v, _ in self._pairs])
        returns = np.array([r for _, r in self._pairs])
        variance = returns.var(0)
        return [
            float(1.0 - (returns[:, i] - values[:, i]).var() / variance[i]) if variance[i] > 1e-12 else None
            for i in range(values.shape[1])
        ]
