"""How long does an update take, alone and beside the others, and what is it made of?

    python benchmarks/update.py [--preset atari-fast] [--set ...] [--rounds N] [--kernels N] [--json FILE]

One batch of real play; the first learner's update of it, launched from Python; on CUDA also as a graph, alone
and beside those of all others, each on a stream of its own, as in training.  `--kernels` lists what the
device spent its time on (of updates launched from Python), the longest first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.timing import median
from lbc.cards import resolve
from lbc.errors import UserError
from lbc.learner import Learner
from lbc.learner.graphed import GraphedUpdate, standing
from lbc.models.torso import CENTRING_BATCHES
from lbc.runtime.run import SerialRun
from lbc.types import Batch


def played(preset: str, env: str | None, sets: Sequence[str]) -> tuple[list[Learner], Batch]:
    """The learners of a short run, and its last batch."""
    wishes = ["actor.num_envs=64", "run.evaluation_episodes=0", *sets]
    run = SerialRun(resolve(preset, wishes, env=env, runtime="serial"))
    try:
        while run.last_batch is None:
            run.step()
        learners = run.experiment.learners
        for learner in learners:  # as in most of a run: the observations' mean is known
            learner.updates = CENTRING_BATCHES * learner.updates_per_batch
        return learners, run.last_batch
    finally:
        run.close()


def measure(learners: Sequence[Learner], batch: Batch, rounds: int) -> dict[str, float]:
    on_cuda = batch.frame.is_cuda
    found = {"Python, one": median(lambda: learners[0].update(batch, 0.5), rounds, on_cuda)}
    if on_cuda:
        place = standing(batch)
        graphs = [GraphedUpdate(learner, place) for learner in learners]

        def launched(some: Sequence[GraphedUpdate]) -> None:
            for graph in some:
                graph.launch(0.5)
            for graph in some:
                graph.finish()

        found["graph, one"] = median(lambda: launched(graphs[:1]), rounds, on_cuda)
        found[f"graphs, all {len(graphs)}"] = median(lambda: launched(graphs), rounds, on_cuda)
    return found


def kernels(learner: Learner, batch: Batch, updates: int = 3) -> list[dict[str, Any]]:
    """Of one update: name, how often, microseconds in all; the longest first."""
    on_cuda = batch.frame.is_cuda
    kind = torch.profiler.ProfilerActivity.CUDA if on_cuda else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profile:
        for _ in range(updates):
            learner.update(batch, 0.5)
        if on_cuda:
            torch.cuda.synchronize()
    found = [
        (event.self_device_time_total if on_cuda else event.self_cpu_time_total, event)
        for event in profile.key_averages()
    ]
    rows = [
        {"kernel": event.key, "times": event.count / updates, "microseconds": spent / updates}
        for spent, event in found
        if spent > 0  # the host's own calls take none of the device's time
    ]
    return sorted(rows, key=lambda row: -row["microseconds"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--preset", default="atari-fast")
    parser.add_argument("--env")
    parser.add_argument("--set", nargs="*", default=[], help="config values")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=0, help="so many of them are listed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    try:
        learners, batch = played(options.preset, options.env, options.set)
    except UserError as error:
        print(f"update: {error}", file=sys.stderr)
        return 2
    report: dict[str, Any] = {"preset": options.preset, "set": options.set}
    report["milliseconds"] = measure(learners, batch, options.rounds)
    for name, spent in report["milliseconds"].items():
        print(f"{name:<16}{spent:9.2f} ms", flush=True)
    if options.kernels:
        rows = report["kernels"] = kernels(learners[0], batch)
        total, times = sum(row["microseconds"] for row in rows), sum(row["times"] for row in rows)
        print(f"{times:,.0f} kernels, {total:,.0f} microseconds in all, one after the other")
        for row in rows[: options.kernels]:
            print(f"{row['microseconds']:9,.0f} us {row['times']:6.0f} x  {row['kernel'][:100]}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
