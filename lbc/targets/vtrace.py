"""V-trace: the value of a policy between mu and pi, from data of mu."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lbc.targets.recursion import sums_from_behind


class VTrace(NamedTuple):
    target: Tensor  # [T, B] v_t
    advantage: Tensor  # [T, B] r_{t+1} + d_{t+1} v_{t+1} - V_t


def importance_ratios(log_pi: Tensor, log_mu: Tensor, real: Tensor, clip: float) -> Tensor:
    """min(pi(a_t) / mu(a_t), clip), and 0 where the transition is not real, which cuts every trace.

    log_pi, log_mu: [T, B] of the action taken;  real: [T, B] bool.
    """
    ratio = torch.exp(log_pi - log_mu).clamp(max=clip)
    return torch.where(real, ratio, torch.zeros_like(ratio))


@torch.no_grad()
def vtrace(v: Tensor, r_tp1: Tensor, d_tp1: Tensor, rho_t: Tensor, c_t: Tensor) -> VTrace:
    """V-trace targets and policy-gradient advantages (IMPALA, eq. 1).

        acc_t = rho_t (r_{t+1} + d_{t+1} V_{t+1} - V_t) + d_{t+1} c_t acc_{t+1}
        v_t   = V_t + acc_t
        adv_t = r_{t+1} + d_{t+1} v_{t+1} - V_t

    v: [T + 1, B] values of all observations, the last one for bootstrapping;
    r_tp1, d_tp1: [T, B] reward and discount (0 after termination) of the transition t -> t + 1;
    rho_t, c_t: [T, B] clipped ratios, 0 on transitions that are not real.
    """
    assert len(v) == len(r_tp1) + 1, f"{len(v)} values for {len(r_tp1)} transitions"
    v_t, v_tp1 = v[:-1], v[1:]
    delta_t = rho_t * (r_tp1 + d_tp1 * v_tp1 - v_t)
    target_t = v_t + sums_from_behind(delta_t, d_tp1 * c_t)
    target_tp1 = torch.cat([target_t[1:], v[-1:]])
    return VTrace(target_t, r_tp1 + d_tp1 * target_tp1 - v_t)
