"""Environment processes: the same games as in this process, none lost, none left behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.environments import workers as workers_module
from lbc.environments.workers import WorkerPool
from lbc.errors import TrainingError, UserError
from lbc.types import EnvironmentStep

FIELDS = tuple(field.name for field in dataclasses.fields(EnvironmentStep))
CATCH = EnvironmentConfig(id="catch", catch_rows=5, catch_columns=3)


def assert_same(expected: EnvironmentStep, groups: list[EnvironmentStep]) -> None:
    for name in FIELDS:
        parts = [getattr(step, name) for step in groups]
        np.testing.assert_array_equal(getattr(expected, name), np.concatenate(parts))


@pytest.mark.parametrize(
    ("config", "workers", "groups", "steps"),
    [
        (CATCH, 1, 1, 40),
        (CATCH, 3, 2, 40),  # shares of different size
        (EnvironmentConfig(id="MinAtar/Breakout"), 2, 2, 120),
        (EnvironmentConfig(id="ALE/Breakout-v5", image_size=42, life_information=True), 2, 3, 80),
    ],
)
def test_a_pool_plays_what_one_environment_plays(config, workers, groups, steps):
    """Whatever the split into groups and processes: copy e is seeded with seed + e."""
    alone = make(config, 12)
    pool = WorkerPool(config, 12, workers, groups)
    try:
        assert pool.spec == alone.spec
        assert_same(alone.reset(5), [group.reset(5) for group in pool.groups])
        rng, lost = np.random.default_rng(0), False
        for _ in range(steps):
            actions = rng.integers(0, alone.spec.num_actions, 12)
            for group in pool.groups:
                group.send(actions[group.first_env : group.first_env + group.num_envs])
            expected = alone.step(actions)
            assert_same(expected, [group.recv() for group in pool.groups])
            lost = lost or expected.lost.any()
        assert lost == config.life_information
    finally:
        pool.close()
        alone.close()


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (7, 7), (8, 14), (16, 30)])
def test_with_many_cores_each_but_one_gets_two_processes(cores, workers, monkeypatch):
    monkeypatch.setattr(workers_module, "usable_cores", lambda: cores)
    assert workers_module.usual_workers() == workers


def test_groups_may_be_asked_in_any_order():
    pool = WorkerPool(CATCH, 4, workers=2, groups=2)
    alone = make(CATCH, 4)
    try:
        a, b = pool.groups
        assert_same(alone.reset(1), [a.reset(1), b.reset(1)])
        for t in range(20):
            for group in (a, b) if t % 2 else (b, a):
                group.send(np.full(2, t % 3))
            seen_b, seen_a = b.recv(), a.recv()
            assert_same(alone.step(np.full(4, t % 3)), [seen_a, seen_b])
    finally:
        pool.close()


def test_groups_are_independent():
    """A group that is never stepped does not hold the others up."""
    pool = WorkerPool(CATCH, 4, workers=1, groups=2)
    try:
        a, b = pool.groups
        a.reset(1), b.reset(1)
        b.send(np.zeros(2, dtype=np.int64))
        b.recv()
        for _ in range(3):
            b.step(np.zeros(2, dtype=np.int64))
        assert b.step(np.zeros(2, dtype=np.int64)).first.all()  # 4-step episodes: five steps after the reset
        assert not a.step(np.zeros(2, dtype=np.int64)).first.any()
    finally:
        pool.close()


def test_what_arrived_stays_what_it_was():
    """Rewards and flags are copies; only frames lie in the shared memory until the next send."""
    pool = WorkerPool(CATCH, 2, workers=1, groups=1)
    try:
        (group,) = pool.groups
        steps = [group.reset(1)]
        first = steps[0].first.copy()
        for _ in range(3):
            steps.append(group.step(np.ones(2, dtype=np.int64)))
        np.testing.assert_array_equal(steps[0].first, first)
        assert first.all() and not steps[1].first.any()
    finally:
        pool.close()


def test_bad_input_is_told_before_any_process_starts():
    with pytest.raises(UserError, match="Did you mean 'catch'"):
        WorkerPool(EnvironmentConfig(id="ketch"), 4)
    with pytest.raises(UserError, match=r"actor\.num_envs is 3, but must be a multiple of actor\.groups = 2"):
        WorkerPool(CATCH, 3, groups=2)


@pytest.mark.parametrize("word", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("between", ["recv and send", "send and recv"])
def test_a_lost_process_is_replaced(monkeypatch, word, between):
    """Killed or hanging, before or after it was told to step: its copies begin new episodes in both
    groups, the others play on as if nothing had happened."""
    monkeypatch.setattr(workers_module, "REPLY_SECONDS", 4.0 if word == signal.SIGSTOP else 60.0)
    alone, pool = make(CATCH, 8), WorkerPool(CATCH, 8, workers=2, groups=2)
    actions = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.int64)
    try:
        a, b = pool.groups
        a.reset(3), b.reset(3), alone.reset(3)
        lost = pool.pids[1]
        os.kill(lost, word if between == "recv and send" else signal.SIGSTOP)
        time.sleep(0.2)
        with pytest.warns(UserWarning, match=r"environment process 1 .*It is replaced"):
            b.send(actions[1])
            a.send(actions[1])
            os.kill(pool.pids[1], word) if between == "send and recv" else None
            seen_a = a.recv()
        seen_b = b.recv()
        expected = alone.step(np.zeros(8, dtype=np.int64))
        for group, seen in ((a, seen_a), (b, seen_b)):
            mine = slice(group.first_env, group.first_env + 2)  # played by process 0
            np.testing.assert_array_equal(seen.frame[:2], expected.frame[mine])
            assert seen.first.tolist() == [False, False, True, True]
            assert (
                not seen.terminated[2:].any() and not seen.truncated[2:].any() and not seen.reward[2:].any()
            )
        assert pool.failures == 1 and pool.pids[1] != lost
        for _ in range(12):  # and on it goes, with whole episodes of four steps
            seen = a.step(actions[1])
            assert seen.frame.shape == (4, 1, 5, 3)
        assert not alive(lost)
    finally:
        pool.close()


def test_a_process_that_fails_again_and_again_ends_the_run():
    """A game that cannot take the action fails every time; the reason is in the last words."""
    pool = WorkerPool(CATCH, 2, workers=1, groups=1)
    try:
        (group,) = pool.groups
        group.reset(1)
        with (
            pytest.warns(UserWarning, match="It is replaced"),
            pytest.raises(TrainingError, match=r"actions must lie in 0..2(.|\n)*failed 4 times in a row"),
        ):
            for _ in range(5):
                group.step(np.full(2, 99))
    finally:
        pool.close()


def test_closing_ends_every_process():
    pool = WorkerPool(CATCH, 4, workers=2)
    pids = pool.pids
    pool.close()
    assert not any(alive(pid) for pid in pids)
    pool.close()  # twice is fine


PARENT = """
import time
from lbc.config import EnvironmentConfig
from lbc.environments.workers import WorkerPool
if __name__ == "__main__":
    pool = WorkerPool(EnvironmentConfig(id="catch"), 4, workers=2)
    print(*pool.pids, flush=True)
    time.sleep(60)
"""


def test_no_orphans_when_the_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2 and all(alive(pid) for pid in pids)
    finally:
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


STEPPING = """
import sys, threading, time
import numpy as np
from lbc.config import EnvironmentConfig
from lbc.environments import workers
if __name__ == "__main__":
    workers.REPLY_SECONDS = 4.0
    pool = workers.WorkerPool(EnvironmentConfig(id="ALE/Pong-v5"), 16, workers=2, groups=1)
    (group,) = pool.groups
    group.reset(1)
    word = []
    threading.Thread(target=lambda: word.append(sys.stdin.readline())).start()
    print("playing", flush=True)
    while not word:
        group.step(np.zeros(16, dtype=np.int64))
    print(pool.failures, flush=True)
    pool.close()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal here")
def test_nobody_hangs_because_all_were_stopped_for_a_while(tmp_path):
    script = tmp_path / "stepping.py"
    script.write_text(STEPPING)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert parent.stdout is not None and parent.stdin is not None
        assert parent.stdout.readline() == "playing\n"
        time.sleep(0.5)
        os.killpg(parent.pid, signal.SIGSTOP)  # what Ctrl-Z sends is its polite form
        time.sleep(5.0)
        os.kill(parent.pid, signal.SIGCONT)
        time.sleep(0.3)  # who waits is awake first
        os.killpg(parent.pid, signal.SIGCONT)
        parent.stdin.write("enough\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "0\n"
    finally:
        os.killpg(parent.pid, signal.SIGCONT)
        parent.kill()
        parent.wait()


def test_workers_live_without_torch():
    """A worker's memory is the game's, not a deep-learning framework's."""
    code = "import sys, lbc.environments.workers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def alive(pid: int) -> bool:
    """Running, and not a zombie that waits to be collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
