"""pi_i: the policy that learner i learns, as a function of its network's preferences Phi_i."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lbc.behavior.mapping import BehaviorMapping
from lbc.config import TargetConfig


@dataclass(frozen=True)
class TargetPolicy:
    """pi_i = softmax(kappa Phi_i); in reading 'entropy_controlled' softmax(tau_i Phi_i) with the tau_i
    that played the trajectory.

    Shared: pi = sum_m omega_m f_{tau_m}(Phi_{policy of m}), the same for all learners: the behavior with the
    psi that played the trajectory, and everybody's newest preferences.
    """

    kappa: float
    tau_of: tuple[int, ...] | None  # [N] component whose tau policy i follows; None: kappa for all
    shared: BehaviorMapping | None = None

    def log_pi(
        self, policy: int, phi: Tensor, psi: Tensor, others: Mapping[int, Tensor] | None = None
    ) -> Tensor:
        """phi: [..., A] of that policy;  psi: [..., 2M];  returns log-probabilities [..., A].

        others: policy -> Phi [..., A], of whom a shared target also consists.
        """
        if self.shared is not None:
            assert others is not None, "a shared target consists of all policies"
            everyone = {**others, policy: phi}
            return self.shared.log_mu(torch.stack([everyone[i] for i in sorted(everyone)]), psi)
        if self.tau_of is None:
            return torch.log_softmax(self.kappa * phi, dim=-1)
        return torch.log_softmax(psi[..., self.tau_of[policy]].unsqueeze(-1) * phi, dim=-1)


def build_target(config: TargetConfig, mapping: BehaviorMapping, num_policies: int) -> TargetPolicy:
    if config.shared:
        return TargetPolicy(config.kappa, None, mapping)
    if config.policy != "entropy_controlled":
        return TargetPolicy(config.kappa, None)
    first = {policy: m for m, policy in reversed(list(enumerate(mapping.components)))}
    return TargetPolicy(config.kappa, tuple(first.get(policy, 0) for policy in range(num_policies)))
