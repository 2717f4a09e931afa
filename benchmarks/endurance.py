"""Does anything grow?  A run at full speed, watched: memory, file descriptors, processes, speed.

    python benchmarks/endurance.py [--preset atari-laptop] [--minutes 10] [--set KEY=VALUE ...] [--json FILE]

Every line is one moment of the run.  The last line says how much memory has grown since the end of the first
minute; processes and descriptors are counted again after the run has closed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cards import resolve
from lbc.runtime.bench import memory, process_tree
from lbc.runtime.run import RUNTIMES, Run

MOMENTS = 20


@dataclass(frozen=True)
class Moment:
    seconds: float
    frames_per_second: float  # since the moment before
    memory: float  # MB, all processes
    device_memory: float  # MB reserved on a CUDA device
    descriptors: int  # open files of all processes
    processes: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="atari-laptop")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    config = resolve(options.preset, tuple(options.set), runtime="local")
    before = (descriptors(), len(process_tree(os.getpid())))
    run = RUNTIMES[config.run.runtime](config)
    try:
        moments = watch(run, 60.0 * options.minutes)
    finally:
        run.close()
    after = (descriptors(), len(process_tree(os.getpid())))
    settled = [m for m in moments if m.seconds >= 60.0] or moments
    growth = settled[-1].memory - settled[0].memory
    print(
        f"memory since the first minute: {growth:+,.0f} MB ({growth / settled[0].memory:+.1%}); "
        f"descriptors {settled[0].descriptors} -> {settled[-1].descriptors}; "
        f"descriptors and processes before {before}, after closing {after}"
    )
    if options.json:
        found = {"moments": [asdict(m) for m in moments], "before": before, "after": after}
        options.json.write_text(json.dumps(found, indent=1))
    return 0


def watch(run: Run, seconds: float) -> list[Moment]:
    """Steps and reports as a training run does; a moment is taken `MOMENTS` times."""
    moments: list[Moment] = []
    begun = last = time.monotonic()
    frames, report_at = 0, run.experiment.config.run.report_seconds
    print(f"{'s':>6}{'frames/s':>10}{'MB':>8}{'MB on device':>14}{'descriptors':>13}{'processes':>11}")
    while (now := time.monotonic()) - begun < seconds:
        run.step()
        if now - begun >= report_at:
            run.report()
            report_at += run.experiment.config.run.report_seconds
        if now - last >= seconds / MOMENTS:
            speed = (run.tracker.frames - frames) / (now - last)
            reserved = torch.cuda.memory_reserved() / 1e6 if run.experiment.device.type == "cuda" else 0.0
            tree = len(process_tree(os.getpid()))
            moments.append(Moment(now - begun, speed, memory(), reserved, descriptors(), tree))
            m = moments[-1]
            print(
                f"{m.seconds:6.0f}{m.frames_per_second:10,.0f}{m.memory:8,.0f}{m.device_memory:14,.0f}"
                f"{m.descriptors:13}{m.processes:11}",
                flush=True,
            )
            frames, last = run.tracker.frames, time.monotonic()
    return moments


def descriptors() -> int:
    """Open files of this process and all below it (Linux; else 0)."""
    total = 0
    for pid in process_tree(os.getpid()):
        try:
            total += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return total


if __name__ == "__main__":
    sys.exit(main())
