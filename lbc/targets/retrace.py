"""Retrace: state-action values of pi, from data of mu."""

from __future__ import annotations

import torch
from torch import Tensor

from lbc.targets.recursion import sums_from_behind


@torch.no_grad()
def retrace(q_t: Tensor, expected_q: Tensor, r_tp1: Tensor, d_tp1: Tensor, c_t: Tensor) -> Tensor:
    """Retrace targets (Munos et al. 2016), with the expectation under pi at the next state.

        G_t = r_{t+1} + d_{t+1} [ E_pi Q_{t+1} + c_{t+1} (G_{t+1} - Q_{t+1}(a_{t+1})) ]
        G of the last transition = r + d E_pi Q

    q_t: [T, B] Q(s_t, a_t) of the actions taken;  expected_q: [T + 1, B] E_pi Q(s_t, .);
    r_tp1, d_tp1: [T, B];  c_t: [T, B] clipped ratios, 0 on transitions that are not real.
    """
    assert len(expected_q) == len(q_t) + 1, f"{len(expected_q)} expectations for {len(q_t)} actions"
    trace_t = torch.cat([c_t[1:], torch.zeros_like(c_t[:1])])  # c_{t+1}
    next_q_t = torch.cat([q_t[1:], torch.zeros_like(q_t[:1])])
    reward_t = r_tp1 + d_tp1 * (expected_q[1:] - trace_t * next_q_t)
    return sums_from_behind(reward_t, d_tp1 * trace_t)
