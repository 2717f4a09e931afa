"""The meta-controller of a run: which controller serves which environment, and what it has seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lbc.behavior.space import BehaviorSpace
from lbc.config import ControllerConfig
from lbc.controller.bandits import State
from lbc.controller.controllers import BanditController, Choice, build_controller


class MetaController:
    """One controller per environment, per actor, or one for all (scope).

    A share of the environments may be kept near on-policy: environment j of these plays one policy
    as its learner sees it (tau = kappa) and is not reported to any controller.
    """

    def __init__(
        self,
        config: ControllerConfig,
        space: BehaviorSpace,
        num_envs: int,
        rng: np.random.Generator,
        scope: str,
        envs_per_actor: int = 0,
        on_policy_envs: int = 0,
        on_policy_tau: float = 1.0,
    ) -> None:
        group = {"environment": 1, "actor": envs_per_actor or num_envs, "shared": num_envs}[scope]
        self.scope = scope
        self._space = space
        self._group = group
        self._on_policy_envs = on_policy_envs
        self._on_policy_tau = on_policy_tau
        self.controllers = [
            build_controller(config, space, child, num_envs)
            for child in rng.spawn(math.ceil(num_envs / group))
        ]
        self._choices: list[Choice | None] = [None] * num_envs
        self._histogram = [np.zeros(count, dtype=np.int64) for count in space.regions]
        self._votes_entropy: list[float] = []

    def start(self, index: int) -> np.ndarray:
        """psi for the episode that environment `index` begins now: [2M]."""
        if index < self._on_policy_envs:
            choice = self._on_policy(index)
        else:
            choice = self.controllers[index // self._group].choose(index)
            for counts, region in zip(self._histogram, choice.regions, strict=True):
                counts[region] += 1
            self._votes_entropy.append(choice.votes_entropy)
        self._choices[index] = choice
        return choice.psi

    def end(self, index: int, score: float | None) -> None:
        """The episode's raw score; None for an episode that was lost."""
        choice = self._choices[index]
        if choice is not None and index >= self._on_policy_envs:
            self.controllers[index // self._group].learn(choice, score)
        self._choices[index] = None

    def _on_policy(self, index: int) -> Choice:
        m = self._space.components
        psi = np.concatenate([np.full(m, self._on_policy_tau), np.eye(m)[index % m]])
        return Choice(psi, np.full(len(self._space.dimensions), -1))

    def favourite(self) -> np.ndarray:
        """The psi that the controller with most experience would evaluate with: [2M]."""
        if self._on_policy_envs == len(self._choices):
            return self._on_policy(0).psi
        return max(self.controllers, key=_experience).favourite()

    def diagnostics(self) -> dict[str, Any]:
        """Since the last call: how often each region was chosen; and the bandits' present state."""
        bandits = [c.bandits for c in self.controllers if isinstance(c, BanditController)]
        dimensions = []
        for k, dimension in enumerate(self._space.dimensions):
            entry: dict[str, Any] = {"name": dimension.name, "chosen": self._histogram[k].tolist()}
            if bandits:
                counts = sum(b.counts[k].mean(0) for b in bandits)[: dimension.regions]
                sums = sum(b.sums[k].mean(0) for b in bandits)[: dimension.regions]
                squares = sum(b.squares[k].mean(0) for b in bandits)[: dimension.regions]
                entry["mean_return"] = _divide(sums, counts)
                entry["signal_to_noise"] = _signal_to_noise(counts, sums, squares)
            dimensions.append(entry)
            self._histogram[k][:] = 0
        summary: dict[str, Any] = {"dimensions": dimensions}
        if bandits:
            summary["votes_entropy"] = float(np.mean(self._votes_entropy)) if self._votes_entropy else None
            summary["bandit_age"] = float(np.mean([b.age for b in bandits]))
        self._votes_entropy.clear()
        return summary

    def snapshot(self) -> dict[str, Any]:
        choices = [None if choice is None else dict(vars(choice)) for choice in self._choices]
        return {
            "controllers": self.controllers,
            "choices": choices,
            "histogram": self._histogram,
            "votes_entropy": self._votes_entropy,
        }

    def resume(self, state: dict[str, Any]) -> None:
        self._choices = [None if choice is None else Choice(**choice) for choice in state["choices"]]
        self._histogram, self._votes_entropy = state["histogram"], state["votes_entropy"]

    def forget_episodes(self) -> None:
        """The episodes in flight are lost: nobody hears of them."""
        for index in range(len(self._choices)):
            self.end(index, None)

    def state(self) -> State:
        return {
            f"{number}/{name}": array
            for number, controller in enumerate(self.controllers)
            for name, array in controller.state().items()
        }

    def restore(self, state: State) -> None:
        for number, controller in enumerate(self.controllers):
            prefix = f"{number}/"
            controller.restore({k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)})


def choose_scope(scope: str, num_envs: int, episodes_expected: float) -> str:
    """'auto': a bandit needs some 200 episodes to say anything, so share it where it would see fewer."""
    if scope != "auto":
        return scope
    return "environment" if episodes_expected / num_envs >= 200 else "shared"


def _experience(controller: Any) -> int:
    return controller.bandits.episodes if isinstance(controller, BanditController) else 0


def _divide(a: np.ndarray, b: np.ndarray) -> list[float | None]:
    return [float(x / y) if y > 0 else None for x, y in zip(a, b, strict=True)]


def _signal_to_noise(counts: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> float | None:
    """Std of the regions' means over the mean standard error of such a mean; about 1 is pure noise."""
    seen = counts > 1
    if seen.sum() < 2:
        return None
    mean = sums[seen] / counts[seen]
    variance = np.maximum(squares[seen] / counts[seen] - mean**2, 0.0)
    error = np.sqrt((variance / counts[seen]).mean())
    return float(mean.std() / error) if error > 0 else None
