"""Two values of one setting: which trains faster on this machine?

    python benchmarks/in_turns.py run.precision float32 bfloat16 [--preset atari-laptop] [--runtime serial]
                                  [--seconds 10] [--pairs 6] [--updates 1010] [--set K=V ...] [--json FILE]

Two runs that differ in nothing else, both alive throughout, train in turns, so that whatever else changes
meanwhile meets both alike.  `--updates` are made before anything is measured, because the first 1,000 of a
torso that is centred cost more than those that follow.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cards import resolve
from lbc.runtime.bench import rate
from lbc.runtime.run import RUNTIMES, Run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("setting", help="as `lbc train --set` knows it")
    parser.add_argument("values", nargs=2, help="what the ratio is over, and what is compared with it")
    parser.add_argument("--preset", default="atari-laptop")
    parser.add_argument("--runtime", default="local", choices=tuple(RUNTIMES))
    parser.add_argument("--seconds", type=float, default=10.0, help="of each stretch")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--updates", type=int, default=1010, help="of every learner before it is measured")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    sets = ("run.device=cpu", "run.evaluation_episodes=0", *options.set)
    runs: dict[str, Run] = {}
    try:
        for value in options.values:
            wishes = (*sets, f"{options.setting}={value}")
            config = resolve(options.preset, wishes, runtime=options.runtime)
            runs[value] = RUNTIMES[options.runtime](config)
        pairs = measured(runs, options.seconds, options.pairs, options.updates)
    finally:
        for run in runs.values():
            run.close()
    below, above = options.values
    ratios = [pair[above] / pair[below] for pair in pairs]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    print(f"{above} / {below}: {statistics.mean(ratios):.3f}, standard error {error:.3f}")
    if options.json:
        options.json.write_text(json.dumps(pairs, indent=1) + "\n")
    return 0


def measured(runs: Mapping[str, Run], seconds: float, pairs: int, updates: int) -> list[dict[str, float]]:
    """Frames per second of both, pair by pair; who begins changes from pair to pair."""
    for run in runs.values():
        while run.experiment.learners[0].updates < updates:
            run.step()
        run.settle()
    print("".join(f"{value:>12}" for value in runs), " frames/s")
    found = []
    for number in range(pairs):
        order = list(runs) if number % 2 == 0 else list(reversed(runs))
        rates = {value: rate(runs[value], seconds) for value in order}
        found.append({value: rates[value] for value in runs})
        print("".join(f"{found[-1][value]:12,.0f}" for value in runs), flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
