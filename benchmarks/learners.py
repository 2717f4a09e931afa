"""Learners in processes of their own or in threads of one: which is faster on this machine's CPU?

    python benchmarks/learners.py [--preset atari-laptop] [--seconds 10] [--pairs 6] [--updates 1010]
                                  [--set K=V ...] [--json FILE]

Two runs that differ in nothing else, both alive throughout, train in turns, so that whatever else changes
meanwhile meets both alike.  `--updates` are made before anything is measured, because the first 1,000 of a
torso that is centred cost more than those that follow.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cards import resolve
from lbc.runtime import LocalRun
from lbc.runtime.bench import rate

WAYS = {"threads": False, "processes": True}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--preset", default="atari-laptop")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each stretch")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--updates", type=int, default=1010, help="of every learner before it is measured")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    sets = ("run.device=cpu", "run.evaluation_episodes=0", *options.set)
    runs: dict[str, LocalRun] = {}
    try:
        for way, processes in WAYS.items():
            wishes = (*sets, f"run.learner_processes={str(processes).lower()}")
            runs[way] = LocalRun(resolve(options.preset, wishes, runtime="local"))
        pairs = measured(runs, options.seconds, options.pairs, options.updates)
    finally:
        for run in runs.values():
            run.close()
    ratios = [pair["processes"] / pair["threads"] for pair in pairs]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    print(f"processes / threads: {statistics.mean(ratios):.3f}, standard error {error:.3f}")
    if options.json:
        options.json.write_text(json.dumps(pairs, indent=1) + "\n")
    return 0


def measured(runs: dict[str, LocalRun], seconds: float, pairs: int, updates: int) -> list[dict[str, float]]:
    """Frames per second of both, pair by pair; who begins changes from pair to pair."""
    for run in runs.values():
        while run.experiment.learners[0].updates < updates:
            run.step()
        run.settle()
    print("".join(f"{way:>12}" for way in runs), " frames/s")
    found = []
    for number in range(pairs):
        order = list(runs) if number % 2 == 0 else list(reversed(runs))
        rates = {way: rate(runs[way], seconds) for way in order}
        found.append({way: rates[way] for way in runs})
        print("".join(f"{found[-1][way]:12,.0f}" for way in runs), flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
