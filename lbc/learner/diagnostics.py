"""What to look at when nothing learns; computed at reports only, since some cost a forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lbc.behavior.mapping import BehaviorMapping
from lbc.learner.estimates import Estimates
from lbc.learner.learner import Learner
from lbc.learner.trust import divergence
from lbc.targets import entropy_bonus, masked_mean
from lbc.types import Batch


def diagnose(learner: Learner, batch: Batch, e: Estimates) -> dict[str, float]:
    """The signs of the known pathologies for one policy (docs/architecture.md explains each).

    e: the learner's own estimates of that batch.
    """
    losses = learner.losses(e, batch).parts()
    shares = _gradient_shares(learner, losses)
    with torch.no_grad():
        log_pi, log_mu = e.log_pi[:-1], batch.log_mu[batch.burn_in : -1]
        kl = divergence(log_pi, log_mu)
        target_variance = _variance(e.v_target, e.real)
        result = {
            "target_entropy": entropy_bonus(log_pi, e.real),
            "kl_to_behavior": masked_mean(kl, e.real),
            "kept_share": e.kept.sum() / e.real.sum().clamp(min=1),
            "clipped_ratio": masked_mean(e.rho_t, e.real),
            "trace_length": _trace_length(e),
            "value_mean": masked_mean(e.outputs.value[:-1], e.real),
            "value_explained": 1.0
            - _variance(e.v_target - e.outputs.value[:-1], e.real) / target_variance.clamp(min=1e-12),
            "retrace_bias": masked_mean(e.q_target - e.q_t, e.real),
            "value_minus_expected_q": masked_mean((e.outputs.value - e.outputs.value_q)[:-1], e.real),
            "features_alive": _in_use(e.outputs.z),
            "advantage_std": e.outputs.advantage.std(-1, correction=0).mean(),
            "stored_state_influence": _stored_state_influence(learner, batch, e),
        }
        if (units := learner.network.policy_units(e.outputs.x)) is not None:
            result["policy_units_alive"] = _in_use(units)
    numbers = {name: float(x) for name, x in result.items()}
    numbers |= {f"loss_{name}": float(loss.detach()) for name, loss in losses.items()}
    numbers |= {f"gradient_share_{name}": share for name, share in shares.items()}
    numbers["gradient_norm"] = learner.gradient_norm
    numbers["discount"] = learner.discount
    return numbers


def _in_use(units: Tensor) -> Tensor:
    """The share of units that vary over states, and are above zero in some.  units: [T, B, Z]."""
    rows = units.float().flatten(0, 1)
    return ((rows.std(0) > 1e-6) & (rows.amax(0) > 0)).float().mean()


def kl_between(estimates: list[Tensor]) -> float:
    """Mean KL over all ordered pairs of target policies; 0 for one policy.  Each: [T, B, A]."""
    pairs = [
        divergence(p, q).mean() for i, p in enumerate(estimates) for j, q in enumerate(estimates) if i != j
    ]
    return float(torch.stack(pairs).mean()) if pairs else 0.0


def kl_of_preferences(
    estimates: Sequence[Estimates], mapping: BehaviorMapping, psi: Tensor
) -> dict[str, float]:
    """How unlike the policies are before they are mixed: softmax(tau A) with the taus that played, and plain
    softmax(A).  psi: [T + 1, B, 2M].

    A shared target makes every log_pi the same; these two are what the paper draws for it.
    """
    phi = torch.stack([e.outputs.phi.detach() for e in estimates])
    plain = [torch.log_softmax(e.outputs.advantage.detach(), -1) for e in estimates]
    return {
        "kl_between_components": kl_between(list(mapping.log_components(phi, psi))),
        "kl_between_softmax": kl_between(plain),
    }


def _gradient_shares(learner: Learner, losses: dict[str, Tensor]) -> dict[str, float]:
    """Each loss's share of the gradient norm at the torso's last layer."""
    weight = learner.network.torso.last.weight
    norms = {}
    for name, loss in losses.items():
        gradient = None
        if loss.requires_grad:
            (gradient,) = torch.autograd.grad(loss, weight, retain_graph=True, allow_unused=True)
        norms[name] = 0.0 if gradient is None else float(gradient.norm())
    total = sum(norms.values()) or 1.0
    return {name: norm / total for name, norm in norms.items()}


def _trace_length(e: Estimates) -> Tensor:
    """Expected steps that a trace survives: 1 / (1 - mean c), as if ratios were independent."""
    return 1.0 / (1.0 - masked_mean(e.rho_t, e.real).clamp(max=0.99))


def _variance(x: Tensor, real: Tensor) -> Tensor:
    mean = masked_mean(x, real)
    return masked_mean((x - mean) ** 2, real)


def _stored_state_influence(learner: Learner, batch: Batch, e: Estimates) -> Tensor:
    """How much the stored recurrent state still matters after burn-in: the relative change of the
    advantages at the first trained row when burn-in starts from zeros instead.

    Near 0: burn-in washes stale states out.  0 for a policy without memory.
    """
    if batch.state.shape[-1] == 0:
        return torch.zeros(())
    beginning = replace(batch.until(batch.burn_in + 1), state=torch.zeros_like(batch.state))
    from_zeros = learner.unroll(beginning).advantage[0]
    from_stored = e.outputs.advantage[0]
    return (from_stored - from_zeros).norm() / from_stored.norm().clamp(min=1e-6)
