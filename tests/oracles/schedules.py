"""The learning rate of a run, step by step as an optimizer would count."""

from __future__ import annotations


def linear_with_warmup(step: int, warmup_steps: int, total_steps: int) -> float:
    """Rises by 1/warmup per step up to 1, then falls by equal amounts to 0 at the last step."""
    factor = 0.0 if warmup_steps else 1.0
    for done in range(step):
        if done < warmup_steps:
            factor += 1.0 / warmup_steps
        else:
            factor -= 1.0 / (total_steps - warmup_steps)
    return factor


def warmup_then_constant(step: int, warmup_steps: int) -> float:
    factor = 0.0 if warmup_steps else 1.0
    for done in range(step):
        if done < warmup_steps:
            factor += 1.0 / warmup_steps
    return factor
