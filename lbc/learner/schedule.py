"""Learning rate, weight decay and entropy bonus over a run, as factors of their configured values."""

from __future__ import annotations


def linear_with_warmup(progress: float, warmup: float) -> float:
    """Rises linearly from 0 to 1 over the first `warmup` of the run, then falls linearly to 0.

    progress: share of the run's budget that is spent, 0..1.  The paper's 4,000 warm-up steps of
    97,656 become the same share of any budget.
    """
    if progress < warmup:
        return progress / warmup
    return max(0.0, (1.0 - progress) / (1.0 - warmup))


def warmup_then_constant(progress: float, warmup: float) -> float:
    """Rises as above, then stays at 1."""
    return min(1.0, progress / warmup) if warmup > 0 else 1.0


SCHEDULES = {"linear": linear_with_warmup, "constant": warmup_then_constant}
