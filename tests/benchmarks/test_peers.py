"""Peers are timed between two of their own reports, and leave no process behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

if not Path("/proc/self/smaps_rollup").exists():
    pytest.skip("processes and memory are read from /proc", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import peers

MEBIBYTE = 1 << 20

# A peer with a child in its session and a daemon out of it, both too stubborn for SIGTERM.
FAKE = """
import signal, subprocess, sys, time
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
command = [sys.executable, "-c", stubborn + "time.sleep(60)"]
for apart in (False, True):
    child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=apart)
    child.stdout.readline()
    print("child", child.pid, flush=True)
for step in range(10_000):
    print("frames", 100 * step, flush=True)
    time.sleep(0.02)
"""


def fake(program: str) -> peers.Peer:
    return peers.Peer("fake", "none", policies=3, passes=2, command=("{python}", "-c", program))


def children(folder: Path) -> list[int]:
    lines = (folder / peers.LOG).read_text().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("child")]


def running(pids: list[int]) -> list[int]:
    return [process.pid for process in peers.processes() if process.pid in pids]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_GRACE_SECONDS", 0.3)
    monkeypatch.setattr(peers, "_MEMORY_SECONDS", 0.1)


# Reading.


def test_printed_frames_are_those_of_the_newest_whole_line(tmp_path):
    assert peers.printed_frames(tmp_path) is None
    log = tmp_path / peers.LOG
    log.write_text("frames 0\n")
    assert peers.printed_frames(tmp_path) is None  # nothing is learned yet
    log.write_text("x" * 100_000 + "\nframes 4096\n[12:00] fps: 7 frames 9\nframes 8192\nwarning\n")
    assert peers.printed_frames(tmp_path) == 8192


def test_reported_frames_begin_with_the_first_update(tmp_path):
    assert peers.reported_frames(tmp_path) is None
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"frames": 100, "updates": 0}\n')
    assert peers.reported_frames(tmp_path) is None
    with metrics.open("a") as file:
        file.write('{"frames": 200, "updates": 1}\n{"frames": 30')  # a line in the making
    assert peers.reported_frames(tmp_path) == 200


def test_last_words_leave_out_reports(tmp_path):
    log = tmp_path / peers.LOG
    assert peers.last_words(log) == "it said nothing"
    log.write_text("hello\n\x1b[31mModuleNotFoundError: No module named 'x'\x1b[0m\n\nframes 12\n")
    assert peers.last_words(log) == "ModuleNotFoundError: No module named 'x'"


# The window.


def test_the_window_begins_after_the_warm_up_and_ends_with_a_report():
    seen = ((100, 10), (105, 50), (111, 90), (120, 300), (170, 700), (172, 999))
    reports = [peers.Report(*pair) for pair in seen]
    assert peers.window([], 60) is None
    assert all(peers.window(reports[:n], 60) is None for n in range(1, 6))
    assert peers.window(reports, 60) == (172 - 111, 999 - 90)


# Processes.


@pytest.fixture
def hungry() -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds 64 MiB, with a child that holds 32."""
    hold = "import sys; x = bytearray(b'x' * {size}); print(flush=True); sys.stdin.read()"
    child = hold.format(size=32 * MEBIBYTE)
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]).stdin; "
    process = subprocess.Popen(
        [sys.executable, "-c", parent + hold.format(size=64 * MEBIBYTE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    for _ in range(2):
        process.stdout.readline()
    yield process
    process.kill()
    peers.stop(process)


def test_memory_is_that_of_the_whole_tree(hungry):
    members = peers.tree(hungry.pid)
    assert len(members) == 2
    alone = peers.memory([process for process in members if process.pid == hungry.pid])
    both = peers.memory(members)
    assert 64 * MEBIBYTE < alone < 84 * MEBIBYTE
    assert alone + 32 * MEBIBYTE < both < alone + 52 * MEBIBYTE


def test_a_tree_holds_nobody_else(hungry):
    assert os.getpid() not in {process.pid for process in peers.tree(hungry.pid)}
    assert {process.pid for process in peers.tree(hungry.pid)} <= {p.pid for p in peers.tree(os.getpid())}


def test_memory_of_a_process_that_is_gone_is_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert peers.memory([peers.Process(process.pid, 0, 0, 0)]) == 0


# Measuring.


def test_a_peer_is_timed_and_stopped_with_all_its_processes(tmp_path):
    began = time.monotonic()
    row = peers.measure(fake(FAKE), "ALE/Pong-v5", 0.6, tmp_path)
    assert row.seconds >= 0.6 and row.frames % 100 == 0
    assert 0 < row.frames <= 100 / 0.02 * (time.monotonic() - began)  # however late the reports are seen
    assert row.frames_per_second == row.frames / row.seconds
    assert row.learner_samples_per_second == pytest.approx(6 * row.frames_per_second)
    assert row.memory_bytes > MEBIBYTE
    assert len(children(tmp_path)) == 2
    assert not running(children(tmp_path))


def test_a_peer_is_stopped_when_the_benchmark_is_interrupted(tmp_path):
    def interrupted(folder: Path) -> int | None:
        if len(children(folder)) == 2:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        peers.measure(replace(fake(FAKE), frames=interrupted), "ALE/Pong-v5", 60, tmp_path)
    assert len(children(tmp_path)) == 2 and not running(children(tmp_path))


def test_orphans_of_a_peer_that_crashed_are_stopped(tmp_path):
    crash = FAKE.partition("for step")[0] + "raise ValueError('out of luck')"
    with pytest.raises(peers.PeerError, match="exit code 1: ValueError: out of luck"):
        peers.measure(fake(crash), "ALE/Pong-v5", 60, tmp_path)
    assert len(children(tmp_path)) == 2 and not running(children(tmp_path))


def test_a_silent_peer_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "_STALL_SECONDS", 0.3)
    silent = fake("import time; print('loading', flush=True); time.sleep(600)")
    with pytest.raises(peers.PeerError, match="no new frames in 0 s"):
        peers.measure(silent, "ALE/Pong-v5", 60, tmp_path)


def test_commands_are_filled_in(tmp_path):
    program = "import sys; sys.exit(' '.join(sys.argv[1:]))"
    peer = replace(fake(program), command=("{python}", "-c", program, "{env}", "{out}"))
    with pytest.raises(peers.PeerError, match=f"exit code 1: ALE/Pong-v5 {tmp_path}$"):
        peers.measure(peer, "ALE/Pong-v5", 1, tmp_path)


# The whole run.


def test_one_failure_leaves_the_others_alone(tmp_path, monkeypatch, capsys):
    steady = "import time\nfor i in range(1, 9999): print('frames', i, flush=True); time.sleep(0.01)"
    monkeypatch.setattr(peers, "EMULATOR", replace(fake(steady), policies=0, passes=0))
    broken = replace(fake("raise SystemExit('no such game')"), name="broken")
    missing = replace(fake(""), name="missing", venv="no-such", packages=(("no-such-package",),))
    monkeypatch.setattr(peers, "prepare", lambda peer: _refuse() if peer.venv else None)
    rows = peers.compare([broken, missing, fake(steady)], "ALE/Pong-v5", 0.2, tmp_path / "peers.json")
    assert [row.error for row in rows] == ["", "ended with exit code 1: no such game", "no network", "", ""]
    assert "no such game" in capsys.readouterr().err
    saved = json.loads((tmp_path / "peers.json").read_text())
    assert [row["name"] for row in saved["rows"]] == [
        "emulator, before", "broken", "missing", "fake", "emulator, after",
    ]  # fmt: skip
    assert saved["rows"][3]["learner_samples_per_second"] == 6 * saved["rows"][3]["frames_per_second"]
    assert saved["rows"][0]["learner_samples_per_second"] is None
    assert saved["machine"]["usable_cores"] >= 1


def _refuse() -> None:
    raise peers.PeerError("no network")


def test_the_table_shows_figures_and_reasons():
    rows = [
        peers.Row("emulator, before", "none", 0, 0, 50_000, 10.0, 2**29),
        peers.Row("lbc", "conv + LSTM", 3, 2, 12_000, 10.0, 3 * 2**30),
        peers.Row("slow", "conv + LSTM", 1, 1, 12_000, 10.0, 2**30),
        peers.Row("fast", "conv + LSTM", 1, 4, 6_000, 10.0, 2**30),
        peers.Row("not recurrent", "conv", 1, 4, 60_000, 10.0, 2**30),
        peers.Row("theirs", "conv + LSTM", 1, 4, error="cannot be installed: no network"),
    ]
    head, rule, *lines, failure = peers.table(rows).splitlines()
    assert len({len(line) for line in (head, rule, *lines)}) == 1
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines] == [
        ["emulator, before", "5,000", "-", "-", "-", "-", "0.50 GiB", "none"],
        ["lbc", "1,200", "3", "2", "7,200", "3.00", "3.00 GiB", "conv + LSTM"],
        ["slow", "1,200", "1", "1", "1,200", "0.50", "1.00 GiB", "conv + LSTM"],
        ["fast", "600", "1", "4", "2,400", "1.00", "1.00 GiB", "conv + LSTM"],
        ["not recurrent", "6,000", "1", "4", "24,000", "10.00", "1.00 GiB", "conv"],
        ["theirs", "failed", "1", "4", "failed", "-", "-", "conv + LSTM"],
    ]
    assert failure == "theirs failed: cannot be installed: no network"


# The peers themselves.


def test_this_package_trains_the_peers_network_and_three_policies():
    single, mixed, laptop = peers.chosen(["lbc", "lbc-bfloat16", "lbc-laptop"])
    for ours in (single, mixed):
        assert ours.frames is peers.reported_frames
        assert (ours.policies, ours.passes, ours.network) == (3, 2, "nature 512 + LSTM 256")
    assert laptop.policies == 3
    assert peers.chosen(None) == list(peers.PEERS)


def test_versions_come_from_the_constraints():
    assert peers.pinned("torch").startswith("torch==")
    with pytest.raises(peers.UserError, match="sb3-ppo"):
        peers.chosen(["sb3-pp"])


def test_scripts_of_the_peers_exist():
    scripts = [peer.command[1] for peer in (peers.EMULATOR, *peers.PEERS) if peer.command[1] != "-m"]
    assert len(scripts) == 4 and all(Path(script).is_file() for script in scripts)


def test_bad_input_is_refused_before_anything_runs(capsys):
    assert peers.main(["--env", "ALE/Pnog-v5"]) == 2
    assert "ALE/Pong-v5" in capsys.readouterr().err
    assert peers.main(["--seconds", "0"]) == 2
    assert peers.main(["--only", "nobody"]) == 2
