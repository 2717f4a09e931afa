"""Shaping, softmax, mixture and dueling, number by number."""

from __future__ import annotations

import math
from collections.abc import Sequence

Floats = Sequence[float]


def shape_sqrt(x: float) -> float:
    sign = (x > 0) - (x < 0)
    return sign * (math.sqrt(abs(x) + 1.0) - 1.0) + 0.001 * x


def shape_log(x: float) -> float:
    return math.log(abs(x) + 1.0) * (2.0 if x >= 0 else -1.0)


def shape_tanh(x: float) -> float:
    return 0.3 * min(math.tanh(x), 0.0) + 5.0 * max(math.tanh(x), 0.0)


def shape_fourth_root(x: float) -> float:
    sign = (x > 0) - (x < 0)
    return sign * ((abs(x) + 1.0) ** 0.25 - 1.0) + 0.001 * x


def softmax(phi: Floats, tau: float) -> list[float]:
    """e^{tau phi_a} / sum_b e^{tau phi_b}."""
    weights = [math.exp(tau * x) for x in phi]
    return [weight / sum(weights) for weight in weights]


def epsilon_greedy(phi: Floats, epsilon: float) -> list[float]:
    best = [a for a, x in enumerate(phi) if x == max(phi)]
    return [epsilon / len(phi) + ((1.0 - epsilon) / len(best) if a in best else 0.0) for a in range(len(phi))]


def mixture(distributions: Sequence[Floats], omega: Floats) -> list[float]:
    """mu(a) = sum_m omega_m pi_m(a)."""
    mu = [0.0] * len(distributions[0])
    for weight, distribution in zip(omega, distributions, strict=True):
        for a, probability in enumerate(distribution):
            mu[a] += weight * probability
    return mu


def dueling_q(advantage: Floats, pi: Floats, value: float) -> list[float]:
    """Q(a) = A(a) - sum_b pi(b) A(b) + V."""
    expected = 0.0
    for a, probability in enumerate(pi):
        expected += probability * advantage[a]
    return [x - expected + value for x in advantage]
