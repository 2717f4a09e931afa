"""F_psi: from the N policies' preferences to the one distribution that an actor plays."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lbc.behavior.distillation import DISTILLATIONS, Distillation, mixture
from lbc.behavior.entropy_control import ENTROPY_CONTROLS, EntropyControl
from lbc.config import BehaviorConfig


@dataclass(frozen=True)
class BehaviorMapping:
    """mu = sum_m omega_m f_{tau_m}(Phi_{policy of m}).

    Component m usually belongs to policy m; 'reduced H' lets three components share one policy.
    psi is the flat vector (tau_1..tau_M, omega_1..omega_M).
    """

    components: tuple[int, ...]  # [M] policy behind each component
    control: EntropyControl  # f_tau
    distil: Distillation = mixture  # g_omega

    def log_components(self, phi: Tensor, psi: Tensor) -> Tensor:
        """phi: [N, ..., A];  psi: [..., 2M];  returns log f_{tau_m}(Phi_m): [M, ..., A]."""
        tau = psi[..., : len(self.components)].movedim(-1, 0)
        return self.control(torch.stack([phi[i] for i in self.components]), tau)

    def log_mu(self, phi: Tensor, psi: Tensor) -> Tensor:
        """phi: [N, ..., A];  psi: [..., 2M];  returns log mu: [..., A]."""
        return self.distil(self.log_components(phi, psi), self.omega(psi))

    def omega(self, psi: Tensor) -> Tensor:
        return psi[..., len(self.components) :]


def build_mapping(config: BehaviorConfig, num_policies: int) -> BehaviorMapping:
    components = config.components or tuple(range(num_policies))
    return BehaviorMapping(
        components, ENTROPY_CONTROLS[config.entropy_control], DISTILLATIONS[config.distillation]
    )
