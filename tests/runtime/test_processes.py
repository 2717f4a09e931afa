"""Whatever ends a local run, nothing of it is left: no process, no shared memory, no open file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lbc.runtime import LocalRun
from tests.environments.test_workers import alive
from tests.runtime.test_local import local_config

COMMAND = (
    *(sys.executable, "-m", "lbc", "train", "catch", "--runtime", "local", "--frames", "100M"),
    *("--set", "actor.workers=2", "run.threads=1", "run.evaluation_episodes=4", "run.report_seconds=0.3"),
)


def descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [below for child in children for below in (int(child), *descendants(int(child)))]


def wait_until(condition, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize(
    ("word", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_nothing_is_left_behind(tmp_path, word, code):
    shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    run = subprocess.Popen([*COMMAND, "--out", str(tmp_path / "run")], stdout=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: (tmp_path / "run" / "metrics.jsonl").exists()), "it trains"
        below = descendants(run.pid)
        assert len(below) >= 3, "two workers and the evaluator, at least"
        run.send_signal(word)
        assert run.wait(60) == code
    finally:
        run.kill()
    assert wait_until(lambda: not any(alive(pid) for pid in below), 20), "no orphans"
    if shared:
        left = {
            name
            for name in set(os.listdir("/dev/shm")) - shared
            if name.startswith(("pym-", "psm_", "sem.mp"))
        }
        assert not left


def test_runs_do_not_pile_up_open_files():
    def one() -> None:
        run = LocalRun(local_config())
        while run.experiment.learners[0].updates == 0:  # learners have processes by then
            run.step()
        run.close()

    one()  # starts the fork server, which stays
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        one()
    assert len(os.listdir("/proc/self/fd")) <= before
