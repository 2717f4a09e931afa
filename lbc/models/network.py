"""One policy's network: torso, recurrent core, dueling heads, auxiliary tasks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lbc.config import ModelConfig, TargetConfig
from lbc.config.own_parts import is_own
from lbc.models.auxiliary import ForwardDynamics, InverseDynamics
from lbc.models.core import NoCore, RecurrentCore, State
from lbc.models.heads import head
from lbc.models.initialisation import INITIALISATIONS, POLICY_GAIN, VALUE_GAIN
from lbc.models.own_torso import own_body
from lbc.models.popart import ValueScale
from lbc.models.torso import Torso
from lbc.types import EnvironmentSpec, Stack

SCALE_MEMORY = 0.99  # of the running std of the advantages, per update
FEATURES_MEMORY = 0.95  # of the running mean of the core's outputs, per update


@dataclass(frozen=True)
class Outputs:
    """What a network says about [T, B] observations."""

    phi: Tensor  # [T, B, A] preferences: the target policy is softmax(kappa phi)
    advantage: Tensor  # [T, B, A] A, not yet centred
    value: Tensor  # [T, B] V
    value_q: Tensor  # [T, B] the state value inside Q: V behind a stop-gradient, or its own
    z: Tensor  # [T, B, Z] torso features, for the auxiliary tasks
    x: Tensor  # [T, B, units] the core's outputs, which the heads read
    state: State  # [2, B, units] after the last step


class PolicyNetwork(nn.Module):
    """The four readings of the target policy differ in Phi alone:

    printed             Phi = A            (the paper's)
    entropy_controlled  Phi = A            (the learner multiplies by the trajectory's tau)
    scale_free          Phi = gain A / running std of A
    decoupled           Phi = logits of their own head, beside the dueling Q
    """

    def __init__(
        self, spec: EnvironmentSpec, model: ModelConfig, target: TargetConfig, mixed: bool = False
    ) -> None:
        super().__init__()
        self.mixed = (
            mixed  # convolutions and matrix products in bfloat16; weights and outputs stay as they are
        )
        init = INITIALISATIONS[model.initialisation]
        self.num_actions = spec.num_actions
        self.target = target
        shape, centring = spec.observation_shape, model.centre_observations
        own = own_body(model, shape) if is_own(model.torso) else None
        self.torso = Torso(model.torso, shape, model.torso_units, init, centring, own)
        inputs = model.torso_units + spec.num_actions + 1
        self.core = RecurrentCore(inputs, model.lstm_units) if model.lstm_units else NoCore(inputs)
        features = model.lstm_units or inputs

        def built(outputs: int, gain: float) -> nn.Module:
            return head(features, model.head_units, outputs, gain, init, model.head_slope)

        self.value = built(1, VALUE_GAIN)
        self.advantage = built(spec.num_actions, POLICY_GAIN)
        self.value_q = built(1, VALUE_GAIN) if model.value_head == "own" else None
        self.logits = built(spec.num_actions, POLICY_GAIN) if target.policy == "decoupled" else None
        z, a = model.torso_units, spec.num_actions
        self.inverse = InverseDynamics(z, a, init) if model.auxiliary_inverse else None
        self.forward_model = ForwardDynamics(z, a, init) if model.auxiliary_forward else None
        mean = torch.zeros(features) if model.centre_features else None
        self.register_buffer("features_mean", mean)  # of the core's outputs; None: read as they are
        self.features_mean: Tensor | None
        self.register_buffer("features_updates", None if mean is None else torch.zeros(()))
        self.features_updates: Tensor | None
        self.scale = ValueScale()
        self.register_buffer("largest_reward", torch.zeros(()))  # shaped, seen by the learner
        self.largest_reward: Tensor
        self.register_buffer("advantage_scale", torch.ones(()))  # std of A over actions, in sigmas
        self.register_buffer("scale_updates", torch.zeros(()))
        self.advantage_scale: Tensor
        self.scale_updates: Tensor

    def numbers(self) -> dict[str, Tensor]:
        """All weights and running statistics, by name."""
        tensors = self.state_dict(keep_vars=True).items()
        return {name: tensor for name, tensor in tensors if tensor.is_floating_point()}

    def initial_state(self, batch: int) -> State:
        return self.core.initial_state(batch)

    def forward(
        self,
        observation: Tensor | Stack,
        first: Tensor,
        previous_action: Tensor,
        previous_reward: Tensor,
        state: State,
    ) -> Outputs:
        """observation: [T, B, *shape];  first: [T, B] bool;  previous_action: [T, B] integers;
        previous_reward: [T, B], shaped;  state: [2, B, units] before the first step.

        The first step of an episode has no previous action (zeros) and previous reward 0.
        """
        mean, sigma = self.scale.mean, self.scale.sigma
        with self.autocast():
            z = self.torso(observation)
            one_hot = nn.functional.one_hot(previous_action, self.num_actions).to(z.dtype)
            one_hot = one_hot * (~first).unsqueeze(-1)
            x = torch.cat([z, one_hot, previous_reward.unsqueeze(-1).to(z.dtype)], dim=-1)
            x, state = self.core(x, first, state)
            heads = (self.advantage, self.value, self.value_q, self.logits)
            read = self._centred(x)
            a, v, v_q, logits = (None if head is None else head(read).to(sigma.dtype) for head in heads)
        assert a is not None and v is not None
        advantage = sigma * a
        value = mean + sigma * v.squeeze(-1)
        value_q = value.detach() if v_q is None else mean + sigma * v_q.squeeze(-1)
        phi = self._scaled(advantage) if logits is None else logits
        return Outputs(phi, advantage, value, value_q, z, x, state.to(sigma.dtype))

    def policy_units(self, x: Tensor) -> Tensor | None:
        """The hidden units behind Phi: [T, B, units]; None where heads are linear."""
        policy = self.advantage if self.logits is None else self.logits
        if not isinstance(policy, nn.Sequential):
            return None
        with self.autocast():
            hidden: Tensor = policy[:-1](self._centred(x))
        return hidden

    def _centred(self, x: Tensor) -> Tensor:
        return x if self.features_mean is None else x - self.features_mean

    def autocast(self) -> torch.autocast:
        """The precision that this network computes in, for whoever calls one of its parts."""
        return torch.autocast(self.scale.sigma.device.type, torch.bfloat16, enabled=self.mixed)

    def _scaled(self, advantage: Tensor) -> Tensor:
        if self.target.policy == "scale_free":
            unit = self.scale.sigma * self.advantage_scale.clamp(min=self.target.scale_free_floor)
            return advantage * (self.target.scale_free_gain / unit)
        return advantage

    def track_values(self, target: Tensor, real: Tensor) -> None:
        """PopArt: follows the value targets [T, B] without changing any value."""
        heads = [self.value] if self.value_q is None else [self.value, self.value_q]
        before = self.scale.sigma.clone()
        self.scale.track(target, real, heads, self.advantage)
        self.advantage_scale *= before / self.scale.sigma  # it is counted in sigmas

    @torch.no_grad()
    def track_features(self, x: Tensor) -> None:
        """Follows the mean of the core's outputs [T, B, units], and keeps what the heads say.

        So the mean changes nothing but the steps of the weights, which are then steps of what differs between
        states.  It is meant against ReLUs that are moved for all states at once until they are below zero in
        all of them, and learn no more; how much it helps: docs/tuning.md.
        """
        if self.features_mean is None or self.features_updates is None:
            return
        self.features_updates.add_(1)
        rate = torch.clamp(1.0 / self.features_updates, min=1.0 - FEATURES_MEMORY)  # an average while young
        change = rate * (x.flatten(0, -2).mean(0) - self.features_mean)
        self.features_mean.add_(change)
        for reader in (self.value, self.advantage, self.value_q, self.logits):
            if reader is not None:
                layer = reader[0] if isinstance(reader, nn.Sequential) else reader
                assert isinstance(layer, nn.Linear)
                layer.bias.add_(layer.weight @ change)

    @torch.no_grad()
    def track_advantages(self, advantage: Tensor) -> None:
        """Moves the running std of A over actions, which reading 'scale_free' divides by."""
        std = (advantage.std(-1, correction=0).mean() / self.scale.sigma).clamp(min=1e-4)
        self.scale_updates += 1
        rate = torch.clamp(1.0 / self.scale_updates, min=1.0 - SCALE_MEMORY)  # a plain average while young
        self.advantage_scale += rate * (std - self.advantage_scale)
