"""Trained frames per second against workers, environments per worker and number of policies.

    python benchmarks/scaling.py --preset atari --workers 1 2 4 8 16 --envs 8 16 32 64 --policies 1 2 3 5 8
    python benchmarks/scaling.py --preset atari-laptop --workers 1 2 --envs 8 16 --policies 1 2 3 --json FILE

Each axis is walked alone, the others stay at the preset's values (workers: as many as a run has;
environments: `--base-envs` per worker; policies: 3).  Behind the policies' column stands the law it is
compared with: seconds per frame = a + b N, fitted by least squares, with the share of the variance that it
explains.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cards import resolve
from lbc.environments.workers import usual_workers
from lbc.errors import UserError
from lbc.runtime.bench import trained_rate

DISCOUNTS = (0.997, 0.999, 0.99, 0.995, 0.98, 0.9985, 0.9925, 0.9975)
SHAPINGS = ("sqrt", "log", "tanh")


def population(size: int) -> list[str]:
    """Overrides for N policies with different discounts; shapings take turns."""
    discounts = [DISCOUNTS[i % len(DISCOUNTS)] for i in range(size)]
    shapings = [SHAPINGS[i % len(SHAPINGS)] for i in range(size)]
    return [f"population.discounts={discounts}", f"population.shapings={json.dumps(shapings)}"]


def measure(
    preset: str, env: str | None, sets: Sequence[str], seconds: float, **shape: int
) -> dict[str, Any]:
    workers, envs, policies = shape["workers"], shape["envs"], shape["policies"]
    wishes = [f"actor.workers={workers}", f"actor.num_envs={workers * envs}", "run.evaluation_episodes=0"]
    config = resolve(preset, [*sets, *wishes, *population(policies)], env=env, runtime="local")
    return shape | {"frames_per_second": trained_rate(config, seconds)}


def law(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """seconds per frame = a + b N over rows that differ in N."""
    n = np.array([row["policies"] for row in rows], dtype=np.float64)
    cost = 1.0 / np.array([row["frames_per_second"] for row in rows])
    b, a = np.polyfit(n, cost, 1)
    residual = cost - (a + b * n)
    return {"a": float(a), "b": float(b), "explained": float(1.0 - residual.var() / max(cost.var(), 1e-30))}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--preset", default="atari")
    parser.add_argument("--env")
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--envs", type=int, nargs="*", default=[], help="per worker")
    parser.add_argument("--policies", type=int, nargs="*", default=[1, 2, 3, 5, 8])
    parser.add_argument("--base-envs", type=int, default=32)
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of each measurement, warm-up not counted"
    )
    parser.add_argument("--set", nargs="*", default=[], help="config values for all measurements")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    base = {"workers": usual_workers(), "envs": options.base_envs, "policies": 3}
    axes = {"workers": options.workers, "envs": options.envs, "policies": options.policies}
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        for axis, values in axes.items():
            for value in values:
                shape = base | {axis: value}
                row = measure(options.preset, options.env, options.set, options.seconds, **shape)
                found.setdefault(axis, []).append(row)
                print(f"{axis:<9}{value:5d}   {row['frames_per_second']:10,.0f} frames/s", flush=True)
    except UserError as error:
        print(f"scaling: {error}", file=sys.stderr)
        return 2
    report: dict[str, Any] = {"preset": options.preset, "base": base, "rows": found}
    if len(found.get("policies", [])) >= 3:
        fitted = report["law"] = law(found["policies"])
        print(
            f"microseconds per frame = {1e6 * fitted['a']:.1f} + {1e6 * fitted['b']:.1f} N, "
            f"explains {fitted['explained']:.1%} of the variance"
        )
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
