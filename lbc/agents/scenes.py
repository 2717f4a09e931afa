"""An episode, step by step: what happened, what every policy thought of it, and what it looked like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from lbc.actor import Mind
from lbc.agents.agent import Agent
from lbc.agents.screen import Screen, screen_of
from lbc.environments import make


@dataclass(frozen=True)
class Scene:
    """One step of an episode."""

    frame: np.ndarray  # what the policies see
    screen: np.ndarray | None  # what a person would see, [H, W, 3], where that is more
    step: int
    score: float  # so far
    action: int
    psi: np.ndarray  # [2M]
    components: np.ndarray  # [M, A] what each component would do
    mu: np.ndarray  # [A] what they do together
    steering: np.ndarray  # [M] each component's share in the action that was taken


class _Telling(Mind):
    """A mind that also says what every component thinks."""

    components: Tensor
    mu: Tensor

    def _summarise(
        self, log_components: Tensor, log_mu: Tensor, psi: Tensor, action: Tensor, acted: Tensor
    ) -> Tensor:
        self.components, self.mu = log_components.exp(), log_mu.exp()
        return super()._summarise(log_components, log_mu, psi, action, acted)


def play(
    agent: Agent, psi: np.ndarray | None = None, seed: int = 0, steps: int | None = None
) -> Iterator[Scene]:
    """One episode, at most `steps` long, with `psi` or else the favourite."""
    psi = agent.favourite if psi is None else psi
    environment = make(agent.config.environment, 1)
    screen: Screen | None = screen_of(agent.config.environment)
    mind = agent.mind(1, seed, _Telling)
    try:
        seen, score, step = environment.reset(seed), 0.0, 0
        shown = None if screen is None else screen.reset(seed)
        while steps is None or step < steps:
            score += float(seen.reward[0])
            over = bool(seen.terminated[0] or seen.truncated[0])
            numbers = np.concatenate([[step == 0, seen.reward[0], over, True], psi])
            thought = mind.think(seen.frame, numbers[None])
            yield Scene(
                seen.frame[0].copy(),
                shown,
                step,
                score,
                int(thought.actions[0]),
                psi,
                mind.components[:, 0].cpu().numpy(),
                mind.mu[0].cpu().numpy(),
                thought.responsibility,
            )
            if over:
                return
            seen, step = environment.step(thought.actions), step + 1
            shown = None if screen is None else screen.step(thought.actions, seen)
    finally:
        environment.close()
