"""The golden trace: 200 actor steps of complete LBC-BM on Catch, against numbers kept in a file.

The run is small but whole: three policies, mixture, voting bandits, LSTM with burn-in from stored states,
both auxiliary tasks, every sequence used twice; float64, one thread, one seed.  Numbers must agree to a
relative 1e-9 (machines differ in the last bits of a sum, and 50 updates let that grow a little).

A change of the algorithm changes the trace.  If that was the intention, say so in the commit and run

    python -m tests.runtime.test_golden --write
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lbc.models import taken
from lbc.runtime import SerialRun
from tests.builders import catch_config

GOLDEN = Path(__file__).with_name("golden_catch.json")
STEPS, EVERY = 200, 20
TOLERANCE = 1e-9


def trace() -> list[dict[str, float]]:
    """What happened in each stretch of 20 actor steps, and the weights at its end."""
    run = SerialRun(catch_config(run={"frames": 4 * STEPS}, behavior={"tau_high": 19.0}))
    e = run.experiment
    seen: list[dict[str, float]] = []
    stretch = {"reward": 0.0, "log_mu": 0.0, "psi": 0.0}
    original = run.actor.step

    def step():
        acted = original()
        stretch["reward"] += float(acted.row.reward.sum())
        stretch["log_mu"] += float(taken(acted.row.log_mu, acted.row.action).mean())
        stretch["psi"] += float(acted.row.psi.sum())
        return acted

    run.actor.step = step  # type: ignore[method-assign]
    for number in range(1, STEPS + 1):
        run.step()
        if number % EVERY == 0:
            entry = {"step": number, **stretch, "updates": e.learners[0].updates}
            entry["episodes"] = run.tracker.episodes
            for i, learner in enumerate(e.learners):
                losses = learner.losses(learner.estimate(run.last_batch), run.last_batch)
                entry[f"loss_{i}"] = float(losses.total().detach())
                entry[f"weights_{i}"] = sum(
                    float(p.detach().abs().sum()) for p in learner.network.parameters()
                )
            seen.append(entry)
            stretch.update(reward=0.0, log_mu=0.0, psi=0.0)
    return seen


def test_the_golden_trace():
    expected = json.loads(GOLDEN.read_text())
    found = trace()
    assert len(found) == len(expected)
    for now, then in zip(found, expected, strict=True):
        assert now == pytest.approx(then, rel=TOLERANCE, abs=TOLERANCE), f"step {then['step']}"
    assert found[-1]["updates"] > 50 and found[-1]["episodes"] > 100, "the trace must be worth comparing"


if __name__ == "__main__":
    if "--write" not in sys.argv:
        sys.exit(f"usage: python -m tests.runtime.test_golden --write   (replaces {GOLDEN.name})")
    GOLDEN.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in trace()) + "\n]\n")
    print(f"wrote {GOLDEN}")
