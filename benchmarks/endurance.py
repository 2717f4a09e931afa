"""Does anything grow?  A run at full speed, watched: memory, file descriptors, processes, speed.

    python benchmarks/endurance.py [--preset atari-laptop] [--minutes 10] [--set KEY=VALUE ...] [--json FILE]
    python benchmarks/endurance.py --pid PID [--minutes 10] [--json FILE]

Every line is one moment of the run.  The last line says how much memory has grown since the end of the first
minute; processes and descriptors are counted again after the run has closed.  With `--pid` it is an
`lbc train` that was started elsewhere, watched from outside until it ends: no speed, and the device's memory
is that of all who use it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
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
    frames_per_second: float | None  # since the moment before
    memory: float  # MB, all processes
    device_memory: float  # MB reserved on a CUDA device
    descriptors: int  # open files of all processes
    processes: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="atari-laptop")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--pid", type=int, help="of a training run that is under way")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds = 60.0 * options.minutes
    before = after = None
    print(f"{'s':>6}{'frames/s':>10}{'MB':>8}{'MB on device':>14}{'descriptors':>13}{'processes':>11}")
    if options.pid:
        moments = list(map(shown, from_outside(options.pid, seconds)))
    else:
        config = resolve(options.preset, tuple(options.set), runtime="local")
        before = (descriptors(os.getpid()), len(process_tree(os.getpid())))
        run = RUNTIMES[config.run.runtime](config)
        try:
            moments = list(map(shown, from_inside(run, seconds)))
        finally:
            run.close()
        after = (descriptors(os.getpid()), len(process_tree(os.getpid())))
    if not moments:
        print("the run ended before the first moment", file=sys.stderr)
        return 1
    settled = [m for m in moments if m.seconds >= 60.0] or moments
    growth = settled[-1].memory - settled[0].memory
    print(
        f"memory since the first minute: {growth:+,.0f} MB ({growth / settled[0].memory:+.1%}); "
        f"descriptors {settled[0].descriptors} -> {settled[-1].descriptors}"
        + (f"; descriptors and processes before {before}, after closing {after}" if before else "")
    )
    if options.json:
        found = {"moments": [asdict(m) for m in moments], "before": before, "after": after}
        options.json.write_text(json.dumps(found, indent=1))
    return 0


def from_inside(run: Run, seconds: float) -> Iterator[Moment]:
    """Steps and reports as a training run does; a moment is taken `MOMENTS` times."""
    begun = last = time.monotonic()
    frames, report_at = 0, run.experiment.config.run.report_seconds
    while (now := time.monotonic()) - begun < seconds:
        run.step()
        if now - begun >= report_at:
            run.report()
            report_at += run.experiment.config.run.report_seconds
        if now - last >= seconds / MOMENTS:
            speed = (run.tracker.frames - frames) / (now - last)
            reserved = torch.cuda.memory_reserved() / 1e6 if run.experiment.device.type == "cuda" else 0.0
            yield moment(os.getpid(), now - begun, speed, reserved)
            frames, last = run.tracker.frames, time.monotonic()


def from_outside(pid: int, seconds: float) -> Iterator[Moment]:
    begun = time.monotonic()
    for number in range(1, MOMENTS + 1):
        time.sleep(max(0.0, begun + number * seconds / MOMENTS - time.monotonic()))
        found = moment(pid, time.monotonic() - begun, None, device_memory())
        if not found.descriptors:
            return
        yield found


def moment(pid: int, seconds: float, speed: float | None, device: float) -> Moment:
    return Moment(seconds, speed, memory(pid), device, descriptors(pid), len(process_tree(pid)))


def shown(m: Moment) -> Moment:
    speed = "-" if m.frames_per_second is None else f"{m.frames_per_second:,.0f}"
    print(
        f"{m.seconds:6.0f}{speed:>10}{m.memory:8,.0f}{m.device_memory:14,.0f}{m.descriptors:13}{m.processes:11}",
        flush=True,
    )
    return m


def device_memory() -> float:
    """MB in use on the first CUDA device, by whomever; 0 without one."""
    ask = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0.0
    return float(said.split()[0]) * 1.048576


def descriptors(pid: int) -> int:
    """Open files of that process and all below it (Linux; else 0)."""
    total = 0
    for each in process_tree(pid):
        try:
            total += len(os.listdir(f"/proc/{each}/fd"))
        except OSError:
            continue
    return total


if __name__ == "__main__":
    sys.exit(main())
