"""Psi: the space of behaviors, cut into regions that a bandit can count.

psi = (tau_1..tau_M, omega_1..omega_M).  A *dimension* is what one bandit decides: one tau_m, one
omega_m, or (jointly) the whole vector omega.  A *region* is an interval or a point of it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from lbc.config import BehaviorConfig


@dataclass(frozen=True)
class Dimension:
    """One decision: ``low[r] .. high[r]`` are the bounds of region r for each value it sets."""

    name: str
    low: np.ndarray  # [R, W] lower bounds; W = 1, or M where omega is chosen jointly
    high: np.ndarray  # [R, W]
    log_scale: bool  # bounds are of log(1 + value)
    component: int  # whose tau or omega; -1 for a joint one

    @property
    def regions(self) -> int:
        return len(self.low)

    def draw(self, region: int, rng: np.random.Generator) -> np.ndarray:
        """A value uniform inside the region (on the dimension's scale): [W]."""
        return self.value(region, rng.random(self.low.shape[1]))

    def value(self, region: int, position: np.ndarray | float = 0.5) -> np.ndarray:
        """The value at a relative position inside the region; 0.5 is its centre: [W]."""
        x = self.low[region] + (self.high[region] - self.low[region]) * position
        return np.expm1(x) if self.log_scale else x


def _intervals(low: float, high: float, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    count = max(1, math.ceil((high - low) / accuracy - 1e-9))
    edges = np.linspace(low, high, count + 1)
    return edges[:-1, None], edges[1:, None]


def _simplex(components: int, steps: int) -> np.ndarray:
    """All omega on the grid of step 1/steps: C(steps + M - 1, M - 1) points, 66 for M = 3, step 0.1."""
    points = [p for p in itertools.product(range(steps + 1), repeat=components) if sum(p) == steps]
    return np.array(points, dtype=np.float64) / steps


@dataclass(frozen=True)
class BehaviorSpace:
    dimensions: tuple[Dimension, ...]
    components: int  # M
    omega_floor: float

    @property
    def regions(self) -> tuple[int, ...]:
        return tuple(d.regions for d in self.dimensions)

    def draw(self, regions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """psi drawn uniformly inside one region per dimension: [K] -> [2M]."""
        return self._assemble([d.draw(int(r), rng) for d, r in zip(self.dimensions, regions, strict=True)])

    def centre(self, regions: np.ndarray) -> np.ndarray:
        """psi at the regions' centres: [K] -> [2M]."""
        return self._assemble([d.value(int(r)) for d, r in zip(self.dimensions, regions, strict=True)])

    def _assemble(self, values: list[np.ndarray]) -> np.ndarray:
        m = self.components
        psi = np.concatenate(values)
        omega = psi[m:] if len(psi) > m else np.ones(1)
        return np.concatenate([psi[:m], normalise(omega, self.omega_floor)])


def normalise(omega: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Non-negative weights to shares that sum to 1, each at least `floor`; all zeros become equal."""
    total = omega.sum()
    shares = omega / total if total > 0 else np.full_like(omega, 1.0 / len(omega))
    return floor + (1.0 - floor * len(omega)) * shares


def build_space(config: BehaviorConfig, num_policies: int) -> BehaviorSpace:
    """The dimensions of Psi for M components: M taus, then how omega is chosen."""
    m = len(config.components) or num_policies
    log_scale = config.tau_scale == "log"
    scale = math.log1p if log_scale else float
    low, high = _intervals(scale(config.tau_low), scale(config.tau_high), config.tau_accuracy)
    dimensions = [Dimension(f"tau_{i + 1}", low, high, log_scale, i) for i in range(m)]
    if m > 1:
        dimensions += _omega_dimensions(config, m)
    return BehaviorSpace(tuple(dimensions), m, min(config.omega_floor, 1.0 / m))


def _omega_dimensions(config: BehaviorConfig, m: int) -> list[Dimension]:
    if config.distillation == "selection":
        points = np.eye(m)
        return [Dimension("selection", points, points, False, -1)]
    if config.omega_grid == "simplex":
        points = _simplex(m, round(1.0 / config.omega_accuracy))
        return [Dimension("omega", points, points, False, -1)]
    low, high = _intervals(0.0, 1.0, config.omega_accuracy)
    return [Dimension(f"omega_{i + 1}", low, high, False, i) for i in range(m)]
