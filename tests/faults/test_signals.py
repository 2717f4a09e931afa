"""Signals to real runs: the first is a request, the second an order, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lbc.cli.stopping import ECHO
from lbc.parameters import newest
from tests.environments.test_workers import alive
from tests.runtime.test_processes import descendants, wait_until

NO_EVALUATOR = "run.evaluation_episodes=0"  # tests/runtime/test_processes.py has it
HANGING = """
import sys, threading, time
from lbc.learner import Learner
def update(self, batch, progress):
    print("learning", flush=True)
    time.sleep(600)
Learner.update = update
from lbc.cli import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def options(out, runtime: str) -> list[str]:
    wishes = (
        "actor.workers=2",
        "run.threads=1",
        "run.report_seconds=0.3",
        "buffer.batch_size=4",
        NO_EVALUATOR,
    )
    words = ["train", "catch", "--runtime", runtime, "--frames", "100M", "--out", str(out)]
    return [*words, *(word for wish in wishes for word in ("--set", wish))]


@pytest.mark.parametrize("runtime", ["serial", "local"])
@pytest.mark.parametrize(("word", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_leaves_a_checkpoint_of_the_last_step(tmp_path, runtime, word, code):
    """To the process and at once to its whole group, as `timeout` and service managers do."""
    run = subprocess.Popen(
        [sys.executable, "-m", "lbc", *options(tmp_path, runtime)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        assert wait_until((tmp_path / "metrics.jsonl").exists), "it trains"
        below = descendants(run.pid)
        run.send_signal(word)
        os.killpg(run.pid, word)
        said = run.communicate(timeout=300)[1]
    finally:
        run.kill()
    assert run.returncode == code and "Traceback" not in said, said
    summary = json.loads((tmp_path / "summary.json").read_text())
    found, complaints = newest(tmp_path / "checkpoints")
    assert found is not None and not complaints
    assert summary["outcome"] == "interrupted" and found.frames == summary["frames"]
    assert wait_until(lambda: not any(alive(pid) for pid in below), 60), "no orphans"


@pytest.mark.parametrize("runtime", ["serial", "local"])
def test_the_second_signal_ends_a_run_that_hangs(tmp_path, runtime):
    """Learners that would take ten more minutes; the second signal does not wait for them."""
    script = tmp_path / "hanging.py"
    script.write_text(HANGING)
    run = subprocess.Popen(
        [sys.executable, str(script), *options(tmp_path / "run", runtime)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert run.stdout is not None
        assert any("learning" in line for line in run.stdout), "it learns"
        below = descendants(run.pid)
        run.send_signal(signal.SIGTERM)
        time.sleep(ECHO + 0.2)
        assert run.poll() is None, "the first one is a request"
        run.send_signal(signal.SIGTERM)
        assert run.wait(300) == 143  # about a second, unless the machine is very busy
    finally:
        run.kill()
    assert wait_until(lambda: not any(alive(pid) for pid in below), 60), "no orphans"
