"""V-trace and Retrace as the explicit sums that define them; one environment, lists over time."""

from __future__ import annotations

from collections.abc import Sequence

Floats = Sequence[float]


def vtrace_target(v: Floats, r: Floats, d: Floats, rho: Floats, c: Floats, t: int) -> float:
    """v_t = V_t + sum_{k >= t} (prod_{t <= j < k} d_{j+1} c_j) rho_k (r_{k+1} + d_{k+1} V_{k+1} - V_k).

    v has one entry more than the others; r[k], d[k] are r_{k+1}, d_{k+1} of the transition k -> k + 1.
    """
    total = v[t]
    for k in range(t, len(r)):
        product = 1.0
        for j in range(t, k):
            product *= d[j] * c[j]
        total += product * rho[k] * (r[k] + d[k] * v[k + 1] - v[k])
    return total


def vtrace_advantage(v: Floats, r: Floats, d: Floats, rho: Floats, c: Floats, t: int) -> float:
    """r_{t+1} + d_{t+1} v_{t+1} - V_t, where the target behind the last transition is the value itself."""
    after = vtrace_target(v, r, d, rho, c, t + 1) if t + 1 < len(r) else v[t + 1]
    return r[t] + d[t] * after - v[t]


def retrace_target(q: Floats, expected_q: Floats, r: Floats, d: Floats, c: Floats, t: int) -> float:
    """G_t = Q_t + sum_{k >= t} (prod_{t < j <= k} d_j c_j) (r_{k+1} + d_{k+1} E_pi Q_{k+1} - Q_k).

    Munos et al. 2016, eq. 3 and 4: the ratio of action j enters from j = t + 1 on, and the discount d_j
    of the transition that leads to it, which is d[j - 1] here.
    """
    total = q[t]
    for k in range(t, len(r)):
        product = 1.0
        for j in range(t + 1, k + 1):
            product *= d[j - 1] * c[j]
        total += product * (r[k] + d[k] * expected_q[k + 1] - q[k])
    return total


def discounted_return(r: Floats, d: Floats, bootstrap: float, t: int) -> float:
    """The n-step return from t to the end: sum_k (prod_{t <= j < k} d_{j+1}) r_{k+1}, plus the bootstrap."""
    total = 0.0
    for k in range(t, len(r)):
        product = 1.0
        for j in range(t, k):
            product *= d[j]
        total += product * r[k]
    product = 1.0
    for j in range(t, len(r)):
        product *= d[j]
    return total + product * bootstrap
