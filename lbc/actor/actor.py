"""The actor: plays E environments with the behavior mu, and hears how each episode ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lbc.behavior.distillation import responsibility
from lbc.behavior.mapping import BehaviorMapping
from lbc.behavior.population import PolicyHyperParameters
from lbc.errors import TrainingError
from lbc.interfaces import VectorEnvironment
from lbc.models.heads import taken
from lbc.models.network import PolicyNetwork
from lbc.types import EnvironmentStep, Row


class PsiSource(Protocol):
    """Whoever chooses psi at the start of an episode and hears its score at the end."""

    def start(self, index: int) -> np.ndarray: ...

    def end(self, index: int, score: float | None) -> None: ...


@dataclass(frozen=True)
class EpisodeEnd:
    index: int  # environment
    score: float  # raw, undiscounted
    steps: int
    truncated: bool


@dataclass(frozen=True)
class ActorStep:
    """One step of all environments."""

    row: Row  # what was seen and done
    state: Tensor  # [N, 2, E, units] before the step
    value: Tensor  # [N, E] every policy's V of what was seen
    entropy: Tensor  # [] of mu, mean over the environments that really acted
    responsibility: Tensor  # [M] mean share of each component in the actions taken
    acted: int  # environments whose action was not ignored
    ended: list[EpisodeEnd]  # episodes whose final frame this row holds


class Actor:
    """::

    while True:
        step = actor.step()          # infer all N policies, mix, sample, act
        buffer.append(step.row, step.state)
    """

    def __init__(
        self,
        environment: VectorEnvironment,
        networks: list[PolicyNetwork],  # the actor's own copies
        population: tuple[PolicyHyperParameters, ...],
        mapping: BehaviorMapping,
        controller: PsiSource,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.environment = environment
        self.networks = networks
        self._population = population
        self._mapping = mapping
        self._controller = controller
        self._device = device
        self._dtype = dtype
        self._generator = torch.Generator(device=device).manual_seed(seed)
        spec, count = environment.spec, environment.num_envs
        self._seen = environment.reset(seed)
        self._stack = torch.zeros(count, *spec.observation_shape, device=device, dtype=self._frame_dtype())
        self._state = torch.stack([net.initial_state(count).to(device) for net in networks])
        self._action = torch.zeros(count, dtype=torch.int64, device=device)
        self._psi = np.zeros((count, 2 * len(mapping.components)))
        self._score = np.zeros(count)
        self._steps = np.zeros(count, dtype=np.int64)

    @torch.inference_mode()
    def step(self) -> ActorStep:
        seen = self._seen
        ended = self._follow_episodes(seen)
        frame = torch.from_numpy(seen.frame).to(self._device)
        first = torch.from_numpy(seen.first).to(self._device)
        reward = torch.from_numpy(seen.reward).to(self._device, self._dtype)
        psi = torch.from_numpy(self._psi).to(self._device, self._dtype)
        self._push_frame(frame, first)
        before = self._state
        phi, value = self._infer(first, reward)
        log_components = self._mapping.log_components(phi, psi)
        log_mu = self._mapping.log_mu(phi, psi)
        if not torch.isfinite(log_mu.sum(-1)).all() and torch.isnan(log_mu).any():
            raise TrainingError(
                "the behavior is not a number: a network or an observation is; the last good weights are kept."
            )
        action = torch.multinomial(log_mu.exp(), 1, generator=self._generator).squeeze(-1)
        self._action = action
        terminated = torch.from_numpy(seen.terminated).to(self._device)
        row = Row(frame.clone(), first, reward, terminated, action, log_mu, psi)
        acted = torch.from_numpy(~(seen.terminated | seen.truncated)).to(self._device)
        share = responsibility(
            torch.stack([taken(x, action) for x in log_components]),
            self._mapping.omega(psi),
            taken(log_mu, action),
        )
        entropy = -(log_mu.exp() * log_mu.clamp(min=-1e9)).sum(-1)
        self._seen = self.environment.step(action.cpu().numpy())
        count = acted.sum().clamp(min=1)
        return ActorStep(
            row,
            before,
            value,
            entropy=torch.where(acted, entropy, 0.0).sum() / count,
            responsibility=torch.where(acted, share, 0.0).sum(-1) / count,
            acted=int(acted.sum()),
            ended=ended,
        )

    def _infer(self, first: Tensor, reward: Tensor) -> tuple[Tensor, Tensor]:
        """All policies on the newest observations: Phi [N, E, A], V [N, E]; moves the states on."""
        phis, values, states = [], [], []
        for network, policy, state in zip(self.networks, self._population, self._state, strict=True):
            shaped = policy.shape(reward).unsqueeze(0)
            out = network(self._stack.unsqueeze(0), first.unsqueeze(0), self._action.unsqueeze(0), shaped, state)
            phis.append(out.phi[0])
            values.append(out.value[0])
            states.append(out.state)
        self._state = torch.stack(states)
        return torch.stack(phis), torch.stack(values)

    def _follow_episodes(self, seen: EnvironmentStep) -> list[EpisodeEnd]:
        """Scores what ended, asks the controller for what begins."""
        self._score += seen.reward
        self._steps += 1
        ended = []
        for index in np.flatnonzero(seen.terminated | seen.truncated):
            ended.append(
                EpisodeEnd(
                    int(index), float(self._score[index]), int(self._steps[index]), bool(seen.truncated[index])
                )
            )
            self._controller.end(int(index), float(self._score[index]))
        for index in np.flatnonzero(seen.first):
            self._psi[index] = self._controller.start(int(index))
            self._score[index] = 0.0
            self._steps[index] = 0
        return ended

    def _push_frame(self, frame: Tensor, first: Tensor) -> None:
        """Newest frame last; a first frame fills the whole stack."""
        channels = frame.shape[1]
        if self._stack.shape[1] == channels:
            self._stack = frame
            return
        repeat = self._stack.shape[1] // channels
        self._stack = torch.cat([self._stack[:, channels:], frame], dim=1)
        if first.any():
            self._stack[first] = frame[first].repeat(1, repeat, *(1,) * (frame.dim() - 2))

    def _frame_dtype(self) -> torch.dtype:
        return torch.uint8 if self.environment.spec.frame_dtype is np.uint8 else self._dtype

    def episode_ages(self) -> np.ndarray:
        """Steps that each episode in flight has lasted: [E]."""
        return self._steps.copy()
