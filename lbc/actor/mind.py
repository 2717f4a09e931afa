"""What acting computes: N policies see E environments, become one behavior, and choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lbc.behavior.distillation import responsibility
from lbc.behavior.mapping import BehaviorMapping
from lbc.behavior.population import PolicyHyperParameters
from lbc.behavior.target import TargetPolicy
from lbc.models.heads import taken
from lbc.models.network import Outputs, PolicyNetwork
from lbc.types import EnvironmentSpec, Row, Stack

FIRST, REWARD, TERMINATED, ACTED, PSI = range(5)  # columns of `numbers`; psi from the last one on


@dataclass(frozen=True)
class Thought:
    """One step of all environments; tensors stay on the device and are valid until the next thought."""

    row: Row
    state: Tensor  # [N, 2, E, units] before the step
    actions: np.ndarray  # [E]
    entropy: float  # of mu, mean over the environments that really acted; NaN if none did
    responsibility: np.ndarray  # [M] mean share of each component in the actions taken
    value: np.ndarray  # [N, W] every policy's V of what the first W environments saw


class Mind:
    """The memory of E environments (frame stacks, recurrent states, last actions), and one thought a step.

    ::

        thought = mind.think(frame, numbers)    # [E, *frame_shape] and [E, 4 + 2M], see the columns above
    """

    SAVED = ("_frames", "_since_first", "_state", "_action", "_generator")

    def __init__(
        self,
        spec: EnvironmentSpec,
        num_envs: int,
        networks: Sequence[PolicyNetwork],  # the actor's own copies
        population: tuple[PolicyHyperParameters, ...],
        mapping: BehaviorMapping,
        target: TargetPolicy,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        watched: int = 0,  # W: environments whose values are reported
    ) -> None:
        self.networks = networks
        self.psi_size = 2 * len(mapping.components)
        self._population = population
        self._mapping = mapping
        self._target = target
        self._device = device
        self._dtype = dtype
        self._watched = watched
        self._generator = torch.Generator(device=device).manual_seed(seed)
        frame_dtype = torch.uint8 if spec.frame_dtype is np.uint8 else dtype
        shape = (spec.frame_stack, num_envs, *spec.frame_shape)
        self._frames = torch.zeros(shape, device=device, dtype=frame_dtype)  # newest last
        self._since_first = torch.zeros(1, num_envs, dtype=torch.int64, device=device)
        self._state = torch.stack([net.initial_state(num_envs).to(device) for net in networks])
        self._action = torch.zeros(num_envs, dtype=torch.int64, device=device)

    @torch.inference_mode()
    def think(self, frame: np.ndarray, numbers: np.ndarray) -> Thought:
        """`numbers`: [E, 4 + 2M], in the order of the columns: one transfer for all."""
        row, state, said = self._think(
            torch.tensor(frame, dtype=self._frames.dtype).to(self._device),
            torch.tensor(numbers, dtype=self._dtype).to(self._device),  # not every device has float64
        )
        return self._told(row, state, said.cpu().numpy())  # the step's only wait for the device

    def keep(self, which: np.ndarray) -> None:
        """Goes on with these environments alone: their numbers, rising."""
        chosen = torch.as_tensor(which, device=self._device)
        self._frames, self._since_first = self._frames[:, chosen], self._since_first[:, chosen]
        self._state, self._action = self._state[:, :, chosen], self._action[chosen]

    def close(self) -> None:
        """Lets go of the environments' memory; called before they close."""

    def _told(self, row: Row, state: Tensor, said: np.ndarray) -> Thought:
        count, m, n = len(row.action), len(self._mapping.components), len(self.networks)
        return Thought(
            row,
            state,
            actions=said[:count].astype(np.int64),
            entropy=float(said[count]),
            responsibility=said[count + 1 : count + 1 + m],
            value=said[count + 1 + m :].reshape(n, -1),
        )

    def _think(self, frame: Tensor, numbers: Tensor) -> tuple[Row, Tensor, Tensor]:
        """On the device alone: the row, the state before it, and what the host wants to hear, packed."""
        first, terminated, acted = (numbers[:, column] > 0 for column in (FIRST, TERMINATED, ACTED))
        reward, psi = numbers[:, REWARD], numbers[:, PSI:]
        self._push_frame(frame, first)
        before = self._state.clone()
        phi, value = self._infer(first, reward)
        log_components = self._mapping.log_components(phi, psi)
        log_mu = self._mapping.distil(log_components, self._mapping.omega(psi))
        action = self._sample(log_mu)
        self._action.copy_(action)
        said = self._summarise(log_components, log_mu, psi, action, acted)
        packed = torch.cat([action.to(self._dtype), said, value[:, : self._watched].flatten()])
        row = Row(frame, first, reward, terminated, action, log_mu, self._log_pi(phi, psi, action), psi)
        return row, before, packed

    def _push_frame(self, frame: Tensor, first: Tensor) -> None:
        self._frames.copy_(torch.cat([self._frames[1:], frame.unsqueeze(0)]))
        self._since_first.copy_(torch.where(first, 0, self._since_first + 1))

    @property
    def seen(self) -> Stack:
        """The newest observations [1, E], in the same form as a learner's."""
        return Stack(self._frames, self._since_first)

    def _infer(self, first: Tensor, reward: Tensor) -> tuple[Tensor, Tensor]:
        """All policies on the newest observations: Phi [N, E, A], V [N, E]; moves the states on."""
        out = self._opinions(first, reward)
        self._state.copy_(torch.stack([x.state for x in out]))
        return torch.stack([x.phi[0] for x in out]), torch.stack([x.value[0] for x in out])

    def _opinions(self, first: Tensor, reward: Tensor) -> list[Outputs]:
        seen = self.seen.tensor()  # once for all
        return [self._opinion(i, seen, first, reward) for i in range(len(self.networks))]

    def _opinion(self, i: int, seen: Tensor | Stack, first: Tensor, reward: Tensor) -> Outputs:
        """Policy i on the newest observations, as a sequence of one step."""
        rows = (first, self._action, self._population[i].shape(reward))
        return self.networks[i](seen, *(x.unsqueeze(0) for x in rows), self._state[i])

    def _sample(self, log_mu: Tensor) -> Tensor:
        """Actions by inversion of the distribution function: [E, A] -> [E].

        The draw stays a rounding error below 1, so that an impossible last action is never taken.
        """
        mu = log_mu.exp()
        draw = torch.rand(len(mu), 1, generator=self._generator, device=self._device, dtype=self._dtype)
        cumulative = mu.cumsum(-1)
        below = cumulative <= draw * (1.0 - 1e-6) * cumulative[:, -1:]
        return below.sum(-1)  # NaN gives action 0; the learner then reports the NaN

    def _log_pi(self, phi: Tensor, psi: Tensor, action: Tensor) -> Tensor:
        """What every target policy thinks of the action now, for the learner's trust region: [E, N]."""
        everyone = dict(enumerate(phi))
        each = [self._target.log_pi(i, x, psi, everyone) for i, x in everyone.items()]
        return torch.stack([taken(x, action) for x in each], dim=-1)

    def _summarise(
        self, log_components: Tensor, log_mu: Tensor, psi: Tensor, action: Tensor, acted: Tensor
    ) -> Tensor:
        """Means over the environments that acted: entropy of mu, then each component's share: [1 + M]."""
        share = responsibility(
            torch.stack([taken(x, action) for x in log_components]),
            self._mapping.omega(psi),
            taken(log_mu, action),
        )
        entropy = -(log_mu.exp() * log_mu.clamp(min=-1e9)).sum(-1)
        both = torch.cat([entropy.unsqueeze(0), share])  # [1 + M, E]
        return torch.where(acted, both, 0.0).sum(-1) / acted.sum()  # NaN where nobody acted
