"""Kills and long runs, with the command line and its processes as a user has them.

    python -m tests.faults.soak kills --runtime serial --kills 50
    python -m tests.faults.soak kills --runtime local --kills 50
    python -m tests.faults.soak workers --kills 50
    python -m tests.faults.soak long --minutes 60

Each prints what it found as one line of JSON and fails if anything was lost; `make soak` runs all of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lbc.cards import resolve
from lbc.parameters import newest
from lbc.runtime import LocalRun

TIMES = {"seconds", "frames_per_second", "time"}  # what no two runs share
INTERVAL = 1.0  # seconds between checkpoints
RECOVERY = 30.0  # seconds until the speed is back after a kill; others may slow the machine meanwhile
SLACK = 10.0  # seconds that a busy machine may take for a step, a report and a checkpoint
SMALL = (
    *("model.torso_units=16", "model.head_units=16", "actor.num_envs=8", "actor.workers=2", "run.threads=1"),
    *("run.evaluation_episodes=0", "run.report_seconds=1e9", "run.reports=50"),
)


def command(out: Path, runtime: str, frames: int, seed: int) -> list[str]:
    """Small networks: what is killed here are processes, not learning."""
    wishes = [word for wish in (*SMALL, f"run.checkpoint_seconds={INTERVAL}") for word in ("--set", wish)]
    options = ["--runtime", runtime, "--frames", str(frames), "--seed", str(seed), "--out", str(out)]
    return [sys.executable, "-m", "lbc", "train", "catch", *options, *wishes]


def start(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def checked(process: subprocess.Popen[bytes], codes: tuple[int, ...]) -> int:
    """Waits for the end of a process, which must be one of `codes`; its last words are the complaint."""
    said = process.communicate()[1].decode(errors="replace")
    assert process.returncode in codes, f"exit code {process.returncode}: {said[-2000:]}"
    return process.returncode


def reports(out: Path) -> list[dict[str, Any]]:
    """Every line must be whole; the one that a kill cut short is gone once the run has gone on."""
    path = out / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


class Journey:
    """One run that is killed again and again, and resumed after each kill."""

    def __init__(self, out: Path, runtime: str, frames: int, seed: int, rng: random.Random) -> None:
        self.out, self.rng = out, rng
        self.words = command(out, runtime, frames, seed)
        self.kills = 0
        self.lost: list[float] = []  # seconds of training behind the checkpoint, at each kill

    def kill_once(self) -> bool:
        """At a moment of its start (one time in five), or up to two seconds after its first checkpoint;
        False if it was over before, or only just."""
        if self._finished():
            return False
        process = start(self.words)
        before = self._newest_frames()
        if self.rng.random() < 0.8:
            wait_for(lambda: self._newest_frames() > before, process, 120.0)
            time.sleep(2.0 * self.rng.random())
        else:
            time.sleep(4.0 * self.rng.random())
        process.send_signal(signal.SIGKILL)
        if checked(process, (0, -signal.SIGKILL)) == 0:
            return False
        self.kills += 1
        self._check(before)
        return True

    def finish(self) -> None:
        if not self._finished():
            checked(start(self.words), (0,))
        assert self._finished()

    def _finished(self) -> bool:
        try:
            return bool(json.loads((self.out / "summary.json").read_text())["outcome"] == "finished")
        except (OSError, ValueError):
            return False

    def _newest_frames(self) -> int:
        names = [path.name for path in (self.out / "checkpoints").glob("*/") if path.name.isdigit()]
        return max(map(int, names), default=-1)

    def _check(self, before: int) -> None:
        found, complaints = newest(self.out / "checkpoints")
        assert not complaints, complaints
        if found is None:
            assert before < 0, "a checkpoint is gone"
            return
        assert found.frames >= before, "the counters went back behind a checkpoint"
        told = [report["seconds"] for report in _whole(self.out / "metrics.jsonl")]
        self.lost.append(max(0.0, max(told, default=0.0) - found.info["seconds"]))
        assert self.lost[-1] <= INTERVAL + SLACK


def _whole(path: Path) -> list[dict[str, Any]]:
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def kills(runtime: str, count: int, folder: Path, frames: int, seed: int = 0) -> dict[str, Any]:
    """`count` kills of the main process, in as many runs as that takes; each run then goes to its end."""
    rng = random.Random(seed)
    done, lost, journeys = 0, [], 0
    while done < count:
        journeys += 1
        out = folder / f"{runtime}-{journeys}"
        journey = Journey(out, runtime, frames, journeys, rng)
        while done + journey.kills < count and journey.kill_once():
            pass
        journey.finish()
        done += journey.kills
        lost += journey.lost
        assert_complete(out, frames)
        if runtime == "serial":
            assert_as_undisturbed(out, command(folder / f"whole-{journeys}", runtime, frames, journeys))
    return {
        "runtime": runtime,
        "kills": done,
        "runs": journeys,
        "lost_seconds_median": round(statistics.median(lost), 2),
        "lost_seconds_max": round(max(lost), 2),
    }


def assert_complete(out: Path, frames: int) -> None:
    """Reports are whole, in order, neither missing nor doubled (the last one is told at the end, too)."""
    told = [report["frames"] for report in reports(out)]
    assert told == sorted(told) and len(set(told)) >= len(told) - 1
    assert told[-1] >= frames
    gaps = [later - earlier for earlier, later in itertools.pairwise(told)]
    assert max(gaps) <= 0.03 * frames, "reports come every 2% of the budget"


def assert_as_undisturbed(out: Path, words: list[str]) -> None:
    """A serial run that was killed is, bit for bit, the one that never was."""
    checked(start(words), (0,))
    whole = Path(words[words.index("--out") + 1])
    mine, theirs = (
        [{key: value for key, value in report.items() if key not in TIMES} for report in reports(path)]
        for path in (out, whole)
    )
    assert mine == theirs
    name = Path("checkpoints") / "weights.safetensors"
    assert (out / name).read_bytes() == (whole / name).read_bytes()


def workers(count: int, frames: int, seed: int = 1, gap: float = 4.0) -> dict[str, Any]:
    """One local run of Catch whose environment processes are killed, and the same run left in peace."""
    disturbed, recoveries, failures = _catch(frames, seed, count, gap)
    undisturbed, _, _ = _catch(frames, seed, 0, gap)
    assert failures == count, f"{failures} processes were replaced after {count} kills"
    slow = count - sum(seconds <= RECOVERY for seconds in recoveries)
    return {
        "kills": count,
        "frames": frames,
        "recovery_seconds_median": round(statistics.median(recoveries), 1) if recoveries else None,
        "recovery_seconds_max": round(max(recoveries), 1) if recoveries else None,
        "slower_than_30_seconds": slow,
        "score_disturbed": round(disturbed, 3),
        "score_undisturbed": round(undisturbed, 3),
    }


def _catch(frames: int, seed: int, count: int, gap: float) -> tuple[float, list[float], int]:
    """Final score; after each kill, seconds until a window of half a second is as fast as usual.

    A kill waits until the one before it is overcome, but never longer than its share of the frames: then
    the recovery was not seen, and the run is long enough for all kills on any machine.
    """
    wishes = ["actor.workers=2", "run.threads=1", "run.evaluation_episodes=0"]
    run = LocalRun(resolve("catch", wishes, runtime="local", frames=frames, seed=seed))
    rng, tracker = random.Random(seed), run.tracker
    speeds: list[float] = []
    recoveries: list[float] = []
    killed_at: float | None = None
    left, window = count, (time.monotonic(), 0)
    try:
        next_kill = time.monotonic() + gap
        while tracker.progress() < 1.0:
            run.step()
            now = time.monotonic()
            if now - window[0] >= 0.5:
                speed = (tracker.frames - window[1]) / (now - window[0])
                window = (now, tracker.frames)
                if killed_at is None:
                    speeds.append(speed)
                elif (speeds and speed >= usual(speeds[-20:])) or now - killed_at > RECOVERY:
                    recoveries.append(now - killed_at)
                    killed_at, next_kill = None, now + gap * rng.random()
            replaced = run.pool.failures == count - left
            late = replaced and tracker.progress() > 1.0 - left / (count + 1)
            if left and (late or (killed_at is None and now >= next_kill and speeds)):
                os.kill(rng.choice(run.pool.pids), signal.SIGKILL)
                killed_at, left = now, left - 1
        run.settle()
        ages = [int(age) for actor in run.actors for age in actor.episode_ages()]
        assert len(ages) == 64 and max(ages) <= 10, "an environment of ten-row episodes has stopped"
        assert not left, f"the run was too short for {left} of the kills"
        return tracker.score_mean, recoveries, run.pool.failures
    finally:
        run.close()


def usual(speeds: list[float]) -> float:
    """90% of the median; where the machine itself is less steady than that, what a quarter of the
    windows stays below."""
    quarter = statistics.quantiles(speeds, n=4)[0] if len(speeds) > 1 else speeds[0]
    return min(0.9 * statistics.median(speeds), quarter)


def long(minutes: float, folder: Path) -> dict[str, Any]:
    """A local run of some minutes that is stopped and resumed twice; memory is sampled all the time."""
    out = folder / "long"
    wishes = ["actor.workers=2", "run.threads=1", "run.checkpoint_seconds=15", "run.report_seconds=2"]
    first = [sys.executable, "-m", "lbc", "train", "catch", "--runtime", "local", "--minutes", str(minutes)]
    first += ["--out", str(out), *(word for wish in wishes for word in ("--set", wish))]
    again = [sys.executable, "-m", "lbc", "train", "--resume", str(out)]
    growths, peaks = [], []
    for sitting, words in enumerate((first, again, again), 1):
        process, samples = start(words), []
        until = 60.0 * minutes * sitting / 3
        while process.poll() is None:
            time.sleep(1.0)
            told = _whole(out / "metrics.jsonl")
            if told:
                samples.append(_memory(process.pid))
            if sitting < 3 and told and told[-1]["seconds"] >= until:
                process.send_signal(signal.SIGTERM)
                break
        checked(process, (0,) if sitting == 3 else (143,))
        third = max(1, len(samples) // 3)
        early, late = statistics.median(samples[third : 2 * third]), statistics.median(samples[-third:])
        growths.append(late / early - 1.0)
        peaks.append(max(samples))
    told = reports(out)
    for key in ("frames", "seconds", "episodes", "updates"):
        values = [report[key] for report in told]
        assert values == sorted(values), f"{key} went back"
    pauses = [b["seconds"] - a["seconds"] for a, b in itertools.pairwise(told)]
    assert max(pauses) < 2.0 + SLACK, f"reports are missing, or the machine is too busy: {max(pauses):.1f} s"
    assert max(growths) < 0.05, f"memory grew by {growths}"
    return {
        "minutes": minutes,
        "resumed": 2,
        "reports": len(told),
        "frames": told[-1]["frames"],
        "memory_mb_peak": round(max(peaks) / 1e6),
        "memory_growth_per_sitting": [round(growth, 4) for growth in growths],
    }


def _memory(pid: int) -> int:
    """Bytes that a process and everything below it hold, pages that they share counted once each."""
    total = 0
    for one in (pid, *_below(pid)):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def _below(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in children for each in (int(child), *_below(int(child)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["kills", "workers", "long"])
    parser.add_argument("--runtime", default="serial", choices=["serial", "local"])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--frames", type=int, default=0, help="of a run; by default what the kills need")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "environment process")
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "kills":
            found = kills(given.runtime, given.kills, Path(folder), given.frames or 8_000, given.seed)
        elif given.what == "workers":
            found = workers(given.kills, given.frames or 600_000, given.seed)
            slow = found["slower_than_30_seconds"]
            assert slow <= 0.1 * given.kills, f"not back to its speed after {slow} of the kills: {found}"
        else:
            found = long(given.minutes, Path(folder))
    print(json.dumps({"soak": given.what} | found), flush=True)


if __name__ == "__main__":
    main()
