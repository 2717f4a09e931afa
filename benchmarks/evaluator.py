"""Does the evaluation process slow training down?

    python benchmarks/evaluator.py [--preset atari] [--seconds 10] [--pairs 6] [--set K=V ...] [--json FILE]

One run; its evaluator is stopped (SIGSTOP) and goes on (SIGCONT) in turns, so that whatever else changes
meanwhile meets both alike.  Prints frames per second with and without it, and which share of a core it had.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cards import resolve
from lbc.runtime import LocalRun
from lbc.runtime.bench import rate


@dataclass(frozen=True)
class Pair:
    """Two neighbouring stretches of one run."""

    without: float  # frames/s
    beside: float  # frames/s, while the evaluator plays
    share: float  # of a core that the evaluator had meanwhile


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--preset", default="atari")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each stretch")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    config = resolve(options.preset, tuple(options.set), runtime="local")
    if not config.run.evaluation_episodes:
        parser.error("this card does not evaluate; add --set run.evaluation_episodes=8")
    run = LocalRun(config)
    try:
        pairs = measured(run, options.seconds, options.pairs)
    finally:
        run.close()
    ratios = [pair.beside / pair.without for pair in pairs]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    print(f"with / without: {statistics.mean(ratios):.3f}, standard error {error:.3f}, {len(ratios)} pairs")
    if options.json:
        options.json.write_text(json.dumps([asdict(pair) for pair in pairs], indent=1) + "\n")
    return 0


def measured(run: LocalRun, seconds: float, count: int) -> list[Pair]:
    assert run.evaluator is not None
    pid, pairs = run.evaluator.pid, list[Pair]()
    while run.experiment.learners[0].updates < 5:
        run.step()
    rate(run, seconds)
    print(f"{'without':>10}{'with':>10}{'its share of a core':>22}")
    try:
        for number in range(count):
            found, used = dict[str, float](), 0.0
            for way in ("without", "beside") if number % 2 == 0 else ("beside", "without"):
                os.kill(pid, signal.SIGCONT if way == "beside" else signal.SIGSTOP)
                run.report()  # a round begins, if none is under way
                before = core_seconds(pid)
                found[way] = rate(run, seconds)
                used += core_seconds(pid) - before
            pairs.append(Pair(found["without"], found["beside"], used / seconds))
            print(f"{found['without']:10,.0f}{found['beside']:10,.0f}{pairs[-1].share:22.2f}", flush=True)
    finally:
        os.kill(pid, signal.SIGCONT)
    return pairs


def core_seconds(pid: int) -> float:
    """That a process has computed for (Linux; else 0)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
