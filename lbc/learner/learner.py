"""Learner i: from a batch of everybody's data to one update of policy i."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from lbc.behavior.population import PolicyHyperParameters
from lbc.behavior.target import TargetPolicy
from lbc.config import LearnerConfig, TargetConfig
from lbc.errors import TrainingError
from lbc.learner.estimates import Estimates, Losses, Moments, Seen, counted
from lbc.learner.optimizer import MEAN, AdamW
from lbc.learner.peers import Peers, unroll
from lbc.learner.schedule import SCHEDULES
from lbc.learner.trust import divergence, inside_trust_region, trust_centre
from lbc.models.heads import dueling_q, taken
from lbc.models.network import Outputs, PolicyNetwork
from lbc.models.torso import CENTRING_BATCHES
from lbc.targets import (
    entropy_bonus,
    forward_dynamics_loss,
    importance_ratios,
    inverse_dynamics_loss,
    policy_loss,
    retrace,
    squared_loss,
    vtrace,
)
from lbc.types import Batch

# Of observations, on a CPU: five sequences of Atari.  Fewer are slower, more only fill memory.
NUMBERS_AT_ONCE = 11_500_000


class Learner:
    """::

    losses = learner.update(batch, progress)      # progress: share of the run's budget spent
    """

    def __init__(
        self,
        policy: PolicyHyperParameters,
        network: PolicyNetwork,
        config: LearnerConfig,
        target: TargetConfig,
        policy_of: TargetPolicy,
    ) -> None:
        self.policy = policy
        self.network = network
        self.updates = 0
        self._config = config
        self._target = target
        self._policy_of = policy_of
        own = policy.entropy_scaling
        self._bonus = config.entropy_scaling if own is None else own
        self._optimizer = AdamW(network.parameters(), config, network.numbers().values())
        self._entropy_scaling, self._discount, self._hurry = (  # `_hurry`: 1 - discount, not below 0.0001
            torch.zeros_like(network.scale.sigma) for _ in range(3)
        )
        self._follow(0.0)
        self.gradient_norm = float("nan")  # before clipping, mean over the updates of the last batch
        self.setbacks = 0  # times that it had to go back to earlier weights
        self.turn: AbstractContextManager[object] = nullcontext()  # held while a piece is differentiated
        self.peers: Peers | None = None  # whom a shared target also consists of

    def update(self, batch: Batch, progress: float) -> Losses:
        """One update for each minibatch; the last one's losses."""
        self.schedule(progress)
        centring, norms = self.still_centring, []
        for part in self.minibatches(batch):
            seen, losses, norm = self.differentiate(part)
            self.gradient_norm = float(norm)
            self.refuse_non_finite()
            self.apply(seen, part, centring)
            self.updates += 1
            norms.append(self.gradient_norm)
        self.gradient_norm = sum(norms) / len(norms)
        return losses

    @property
    def updates_per_batch(self) -> int:
        return self._config.minibatches

    def minibatches(self, batch: Batch) -> list[Batch]:
        """What each of the updates that come of a batch learns from: some of its sequences."""
        return batch.parts(self.updates_per_batch)

    def refuse_non_finite(self) -> None:
        """Raises where the last gradient was not a number, or infinite (as it is if the loss is)."""
        if not math.isfinite(self.gradient_norm):
            raise TrainingError(
                f"policy {self.policy.index + 1} met a non-finite gradient at update {self.updates}. "
                "Try a smaller learner.learning_rate, or a reward shaping that compresses more."
            )

    def go_back(self, weights: dict[str, Tensor]) -> None:
        """To weights that were good.  The moments that led away from them begin at zero, in place."""
        self.network.load_state_dict(weights)
        self._optimizer.restore({})
        self.setbacks += 1

    @property
    def still_centring(self) -> bool:
        seen = self.updates // self.updates_per_batch  # in batches, or small updates would end it too soon
        return self.network.torso.centring and seen < CENTRING_BATCHES

    # The two halves of an update.  Neither waits for the device, so both can be captured in a graph.

    def differentiate(self, batch: Batch) -> tuple[Seen, Losses, Tensor]:
        """Fills the gradients, clipped; returns their norm before.

        The batch comes in pieces, because activations are hundreds of times as large as frames.  A loss is
        a mean over real transitions: each piece counts by its share of them, so that the gradients add up
        to those of the whole batch.
        """
        pieces = self.pieces(batch)
        moments = self._moments(pieces) if len(pieces) > 1 and self._config.normalise_advantage else None
        if self._config.bound_targets:
            self._largest_return(self.policy.shape(batch.reward[batch.burn_in + 1 :]))  # of all pieces
        transitions = counted(batch)
        self._optimizer.zero_grad()
        seen, losses = [], []
        for piece in pieces:
            with self.turn:
                e = self.estimate(piece, moments)
                losses.append(self.losses(e, piece).times(counted(piece) / transitions))
                losses[-1].total().backward()
            seen.append(Seen(e.outputs.advantage.detach(), e.v_target, e.real, e.outputs.x.detach()))
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._config.clip_norm)
        return Seen(*(torch.cat(x, 1) for x in zip(*seen, strict=True))), Losses.added(losses), norm

    def pieces(self, batch: Batch) -> list[Batch]:
        """Sequences that go through the network together."""
        rows, sequences = batch.first.shape
        chunk = self._config.chunk or sequences
        if not self._config.chunk and not batch.frame.is_cuda:
            numbers = (rows - batch.burn_in) * math.prod(self.network.torso.shape)
            chunk = max(1, NUMBERS_AT_ONCE // numbers)
        return batch.parts(math.ceil(sequences / chunk))

    @torch.no_grad()
    def _moments(self, pieces: Sequence[Batch]) -> Moments:
        """One more forward pass: no piece knows how large the others' advantages are."""
        one = torch.ones_like(self.network.scale.sigma)
        alone = [self.estimate(piece, Moments(0.0 * one, one)) for piece in pieces]
        return Moments.of(torch.cat([e.advantage for e in alone], 1), torch.cat([e.real for e in alone], 1))

    def apply(self, seen: Seen, batch: Batch, centring: bool) -> None:
        """One step of the weights; running statistics follow the batch."""
        self._optimizer.step()
        self.network.track_features(seen.x)
        if self._target.policy == "scale_free":
            self.network.track_advantages(seen.advantage)
        if centring:
            self.network.torso.track([piece.observation for piece in self.pieces(batch)])
        if self._config.popart:
            self.network.track_values(seen.v_target, seen.real)
        self._optimizer.average()

    def optimizer_state(self) -> dict[str, list[Tensor]]:
        """AdamW's step counts, moments and mean, copies."""
        return self._optimizer.state()

    def restore_optimizer(self, state: dict[str, list[Tensor]]) -> None:
        self._optimizer.restore(state)

    def to_play(self) -> dict[str, Tensor]:
        """The network's tensors, as their mean over the last updates where there is one."""
        newest, means = self.network.state_dict(), self._optimizer.moments.get(MEAN)
        return newest | dict(zip(self.network.numbers(), means, strict=True)) if means else newest

    def live_tensors(self) -> list[Tensor]:
        """All that updates change in place: weights, running statistics, moments."""
        moments = self._optimizer.moments
        return [
            *self.network.state_dict(keep_vars=True).values(),
            *(x for kept in moments.values() for x in kept),
        ]

    def live_in(self, places: Sequence[Tensor]) -> None:
        """From now on these are its live tensors; their values are its state."""
        for own, place in zip(self.live_tensors(), places, strict=True):
            own.data = place

    def snapshot(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer_state(),
            "updates": self.updates,
            "gradient_norm": self.gradient_norm,
            "setbacks": self.setbacks,
            "progress": self._progress,
        }

    def resume(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.restore_optimizer(state["optimizer"])
        self.updates, self.gradient_norm = state["updates"], state["gradient_norm"]
        self.setbacks = state.get("setbacks", 0)
        self._follow(state.get("progress", 0.0))  # a report may come before the next update

    def schedule(self, progress: float) -> None:
        """Learning rate, weight decay, entropy bonus and discount for the next update, `progress` of the
        run's budget spent; the peers as they are now."""
        if self.peers is not None:
            self.peers.pull()
        config, warmup = self._config, self._config.warmup_fraction
        rate = config.learning_rate * SCHEDULES[config.learning_rate_schedule](progress, warmup)
        decay = config.weight_decay * SCHEDULES[config.weight_decay_schedule](progress, warmup)
        self._optimizer.schedule(rate, decay)
        self._follow(progress)

    def _follow(self, progress: float) -> None:
        """What the loss itself has of the schedules."""
        self._progress = progress
        share = SCHEDULES[self._config.entropy_schedule](progress, 0.0)
        self._entropy_scaling.fill_(self._bonus * share)
        self.discount = self.policy.discount_at(progress)
        self._discount.fill_(self.discount)
        self._hurry.fill_(1.0 - min(self.discount, 0.9999))

    def unroll(self, batch: Batch) -> Outputs:
        return unroll(self.policy, self.network, batch)

    def estimate(self, batch: Batch, moments: Moments | None = None) -> Estimates:
        """`moments`: of the advantages that `batch` is a piece of; by default it is all there is."""
        cut, target = batch.burn_in, self._target
        out = self.unroll(batch)
        action = batch.action[cut:-1]
        others = None if self.peers is None else self.peers.phi(batch)
        log_pi = self._policy_of.log_pi(self.policy.index, out.phi, batch.psi[cut:], others)
        log_mu = batch.log_mu[cut:-1]
        log_pi_t, log_mu_t = taken(log_pi[:-1], action), taken(log_mu, action)
        real = ~batch.first[cut + 1 :]
        r_tp1 = self.policy.shape(batch.reward[cut + 1 :])
        d_tp1 = self._discount * (~batch.terminated[cut + 1 :]).to(r_tp1.dtype)
        with torch.no_grad():
            rho_t = importance_ratios(log_pi_t, log_mu_t, real, target.clip_rho)
            c_t = importance_ratios(log_pi_t, log_mu_t, real, target.clip_c) * target.trace_lambda
        q = dueling_q(out.advantage[:-1], log_pi[:-1], out.value_q[:-1])
        q_t = taken(q, action)
        value, value_q = out.value.detach(), out.value_q.detach()
        if not target.bootstrap:
            value, value_q = _without_last(value), _without_last(value_q)
        v_target, advantage = vtrace(value, r_tp1, d_tp1, rho_t, c_t)
        q_target = retrace(q_t.detach(), value_q, r_tp1, d_tp1, c_t)
        if self._config.bound_targets:
            bound = self._largest_return(r_tp1)
            v_target, q_target = v_target.clamp(-bound, bound), q_target.clamp(-bound, bound)
        advantage = self._scaled(advantage, real, moments)
        kept = real
        if target.kl_threshold > 0:
            kept = kept & (divergence(log_pi[:-1].detach(), log_mu) <= target.kl_threshold)
        if target.trust_ratio > 0:
            centre = trust_centre(target.trust_centre, log_mu_t, batch.log_pi[cut:-1], self.policy.index)
            kept = kept & inside_trust_region(log_pi_t - centre, advantage, target.trust_ratio)
        return Estimates(
            out, log_pi, log_pi_t, log_mu_t, rho_t, q_t, v_target, q_target, advantage, real, kept
        )

    def _largest_return(self, reward: Tensor) -> Tensor:
        """What no return can exceed: the largest shaped reward seen so far, for ever."""
        largest = self.network.largest_reward
        largest.copy_(torch.maximum(largest, reward.abs().amax()))
        return largest / self._hurry

    def _scaled(self, advantage: Tensor, real: Tensor, moments: Moments | None) -> Tensor:
        """The advantage as the policy's loss uses it: in units of the values' spread, or standardised."""
        advantage = advantage / self.network.scale.sigma
        if not self._config.normalise_advantage:
            return advantage
        mean, std = moments or Moments.of(advantage, real)
        return (advantage - mean) / std

    def losses(self, e: Estimates, batch: Batch) -> Losses:
        config, action = self._config, batch.action[batch.burn_in : -1]
        sigma = self.network.scale.sigma  # 1 without PopArt: losses are in units of the value's own spread
        zero = e.q_t.new_zeros(())
        auxiliary, z = zero, e.outputs.z
        if self.network.inverse is not None:
            with self.network.autocast():
                logits = self.network.inverse(z).to(zero.dtype)
            auxiliary = inverse_dynamics_loss(logits, action, e.real)
        if self.network.forward_model is not None:
            with self.network.autocast():
                predicted = self.network.forward_model(z, action).to(zero.dtype)
            auxiliary = auxiliary + forward_dynamics_loss(predicted, z[1:].to(zero.dtype), e.real)
        entropy = entropy_bonus(e.log_pi[:-1], e.real) if self._bonus else zero
        return Losses(
            value=config.v_loss_scaling * squared_loss(e.v_target, e.outputs.value[:-1], e.real) / sigma**2,
            q=config.q_loss_scaling * squared_loss(e.q_target, e.q_t, e.real) / sigma**2,
            policy=config.pi_loss_scaling * policy_loss(e.log_pi_t, e.rho_t * e.kept, e.advantage, e.real),
            auxiliary=config.auxiliary_scaling * auxiliary,
            entropy=-self._entropy_scaling * entropy,
        )


def _without_last(value: Tensor) -> Tensor:
    return torch.cat([value[:-1], torch.zeros_like(value[-1:])])
