"""The actor: plays E environments with the behavior mu, and hears how each episode ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lbc.behavior.distillation import responsibility
from lbc.behavior.mapping import BehaviorMapping
from lbc.behavior.population import PolicyHyperParameters
from lbc.behavior.target import TargetPolicy
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
    index: int  # environment, counted within its actor
    score: float  # raw, undiscounted
    steps: int
    truncated: bool


@dataclass(frozen=True)
class ActorStep:
    """One step of all environments."""

    seen: EnvironmentStep  # what came from the environments
    row: Row  # the same with what was done, on the device
    state: Tensor  # [N, 2, E, units] before the step
    value: np.ndarray  # [N, W] every policy's V of what the first W environments saw
    entropy: float  # of mu, mean over the environments that really acted; NaN if none did
    responsibility: np.ndarray  # [M] mean share of each component in the actions taken
    ended: list[EpisodeEnd]  # episodes whose final frame this row holds
    waited: float  # seconds until the environments had played


class Actor:
    """::

    while True:
        step = actor.step()          # receive, infer all N policies, mix, sample, send
        buffer.append(step.row, step.state)
        ...                          # the environments play on while somebody learns
    """

    def __init__(
        self,
        environment: VectorEnvironment,
        networks: list[PolicyNetwork],  # the actor's own copies
        population: tuple[PolicyHyperParameters, ...],
        mapping: BehaviorMapping,
        target: TargetPolicy,
        controller: PsiSource,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        watched: int = 0,  # W: environments whose values are reported
        first_env: int = 0,  # number of the first environment, as the controller counts them
    ) -> None:
        self.environment = environment
        self.networks = networks
        self._population = population
        self._mapping = mapping
        self._target = target
        self._controller = controller
        self._device = device
        self._dtype = dtype
        self._generator = torch.Generator(device=device).manual_seed(seed + first_env)
        self._first_env = first_env
        spec, count = environment.spec, environment.num_envs
        self._watched = watched
        self._opening: EnvironmentStep | None = environment.reset(seed)
        self._stack = torch.zeros(count, *spec.observation_shape, device=device, dtype=self._frame_dtype())
        self._state = torch.stack([net.initial_state(count).to(device) for net in networks])
        self._action = torch.zeros(count, dtype=torch.int64, device=device)
        self._psi = np.zeros((count, 2 * len(mapping.components)))
        self._score = np.zeros(count)
        self._steps = np.zeros(count, dtype=np.int64)

    @torch.inference_mode()
    def step(self) -> ActorStep:
        asked = time.perf_counter()
        seen = self._opening or self.environment.recv()
        self._opening = None
        waited = time.perf_counter() - asked
        ended = self._follow_episodes(seen)
        frame = torch.tensor(seen.frame, device=self._device, dtype=self._stack.dtype)
        over = seen.terminated | seen.truncated
        numbers = np.column_stack([seen.first, seen.reward, seen.terminated, ~over, self._psi])
        columns = torch.tensor(numbers, device=self._device, dtype=self._dtype)  # one transfer for all
        first, terminated, acted = columns[:, 0] > 0, columns[:, 2] > 0, columns[:, 3] > 0
        reward, psi = columns[:, 1], columns[:, 4:]
        self._push_frame(frame, first, bool(seen.first.any()))
        before = self._state
        phi, value = self._infer(first, reward)
        log_components = self._mapping.log_components(phi, psi)
        log_mu = self._mapping.distil(log_components, self._mapping.omega(psi))
        self._action = action = self._sample(log_mu)
        said = self._summarise(log_components, log_mu, psi, acted)
        packed = torch.cat([action.to(self._dtype), said, value[:, : self._watched].flatten()]).cpu().numpy()
        count, m = len(action), len(self._mapping.components)
        self.environment.send(packed[:count].astype(np.int64))  # the step's only wait for the device
        return ActorStep(
            seen,
            Row(frame, first, reward, terminated, action, log_mu, self._log_pi(phi, psi), psi),
            before,
            value=packed[count + 1 + m :].reshape(len(value), -1),
            entropy=float(packed[count]),
            responsibility=packed[count + 1 : count + 1 + m],
            ended=ended,
            waited=waited,
        )

    def _log_pi(self, phi: Tensor, psi: Tensor) -> Tensor:
        """What every target policy thinks of the action now, for the learner's trust region: [E, N]."""
        each = [self._target.log_pi(i, x, psi) for i, x in enumerate(phi)]
        return torch.stack([taken(x, self._action) for x in each], dim=-1)

    def _sample(self, log_mu: Tensor) -> Tensor:
        """Actions by inversion of the distribution function: [E, A] -> [E].

        The draw stays a rounding error below 1, so that an impossible last action is never taken.
        """
        mu = log_mu.exp()
        draw = torch.rand(len(mu), 1, generator=self._generator, device=self._device, dtype=self._dtype)
        cumulative = mu.cumsum(-1)
        below = cumulative <= draw * (1.0 - 1e-6) * cumulative[:, -1:]
        return below.sum(-1)  # NaN gives action 0; the learner then reports the NaN

    def _summarise(self, log_components: Tensor, log_mu: Tensor, psi: Tensor, acted: Tensor) -> Tensor:
        """Means over the environments that acted: entropy of mu, then each component's share: [1 + M]."""
        action = self._action
        share = responsibility(
            torch.stack([taken(x, action) for x in log_components]),
            self._mapping.omega(psi),
            taken(log_mu, action),
        )
        entropy = -(log_mu.exp() * log_mu.clamp(min=-1e9)).sum(-1)
        both = torch.cat([entropy.unsqueeze(0), share])  # [1 + M, E]
        return torch.where(acted, both, 0.0).sum(-1) / acted.sum()  # NaN where nobody acted

    def _infer(self, first: Tensor, reward: Tensor) -> tuple[Tensor, Tensor]:
        """All policies on the newest observations: Phi [N, E, A], V [N, E]; moves the states on."""
        phis, values, states = [], [], []
        for network, policy, state in zip(self.networks, self._population, self._state, strict=True):
            shaped = policy.shape(reward).unsqueeze(0)
            rows = (self._stack, first, self._action)
            out = network(*(x.unsqueeze(0) for x in rows), shaped, state)
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
            score = float(self._score[index])
            ended.append(EpisodeEnd(int(index), score, int(self._steps[index]), bool(seen.truncated[index])))
            self._controller.end(self._first_env + int(index), score)
        for index in np.flatnonzero(seen.first):
            self._psi[index] = self._controller.start(self._first_env + int(index))
            self._score[index] = 0.0
            self._steps[index] = 0
        return ended

    def _push_frame(self, frame: Tensor, first: Tensor, any_first: bool) -> None:
        """Newest frame last; a first frame fills the whole stack."""
        channels = frame.shape[1]
        if self._stack.shape[1] == channels:
            self._stack = frame
            return
        repeat = self._stack.shape[1] // channels
        self._stack = torch.cat([self._stack[:, channels:], frame], dim=1)
        if any_first:
            self._stack[first] = frame[first].repeat(1, repeat, *(1,) * (frame.dim() - 2))

    def _frame_dtype(self) -> torch.dtype:
        return torch.uint8 if self.environment.spec.frame_dtype is np.uint8 else self._dtype

    def episode_ages(self) -> np.ndarray:
        """Steps that each episode in flight has lasted: [E]."""
        return self._steps.copy()
