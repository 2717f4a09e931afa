"""`lbc bench` measures real runs; tests never look at how fast they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lbc.cli import main
from lbc.runtime.bench import Speed, bare, measure, memory
from tests.builders import catch_config

TINY = ("--set", "run.threads=1", "--set", "actor.workers=1", "--minutes", "0.01")


def test_every_figure_is_measured():
    said: list[str] = []
    config = catch_config(
        run={"runtime": "local", "evaluation_episodes": 0}, actor={"num_envs": 4, "workers": 1}
    )
    speed = measure(config, 0.2, said.append)
    assert min(speed.bare_before, speed.bare_after, speed.acting, speed.trained, speed.updates) > 0
    assert speed.learner_samples == pytest.approx(speed.trained * 3 * 2)
    assert sum(speed.time.values()) == pytest.approx(1.0)
    assert 0 < speed.learner_busy <= 1.05
    assert speed.memory_before > 10 and speed.memory_after > 10
    assert speed.bytes_per_step > 0 and speed.policy_lag is not None
    assert speed.bare_alike is not None and speed.bare_alike > 0
    assert len(said) == 5 and "(processes: 1, environments: 4)" in said[-1]
    assert speed.ratio == speed.trained / max(speed.bare_before, speed.bare_after)


def test_bare_counts_every_step(monkeypatch):
    """Frames over time: a clock that stands at one second makes the rate the number of frames."""
    ticks = iter(range(1000))
    monkeypatch.setattr("lbc.runtime.bench.time.perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr("lbc.runtime.bench.usable_cores", lambda: 2)
    assert bare(catch_config(), 0.5) == 8 * 2 * 32
    assert bare(catch_config(), 0.5, workers=3, num_envs=6) == 8 * 6


def test_memory_counts_the_processes_below():
    before = memory()
    child = subprocess.Popen(
        [sys.executable, "-c", "x = bytearray(80_000_000); print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    try:
        assert memory() - before > 60
    finally:
        child.kill()
        child.wait()


def test_the_command_prints_a_table_or_json(capsys):
    assert main(["bench", "--preset", "catch", "--runtime", "local", *TINY]) == 0
    text = capsys.readouterr().out
    assert "trained / bare" in text and "waiting for the games" in text
    assert main(["bench", "--preset", "catch", "--runtime", "serial", "--json", *TINY]) == 0
    out, err = capsys.readouterr()
    assert "trained / bare" in err
    found = json.loads(out)
    assert found["games"][0]["environment"] == "catch" and found["games"][0]["trained"] > 0
    assert found["machine"]["usable_cores"] <= (os.cpu_count() or 1)


def test_bad_input_is_one_sentence(capsys):
    assert main(["bench", "--preset", "ketch"]) == 2
    assert main(["bench", "--preset", "catch", "--runtime", "cluster"]) == 2
    assert "cluster" in capsys.readouterr().err


def test_the_ratio_takes_the_better_bare():
    assert Speed("x", bare_before=100.0, bare_after=200.0, trained=100.0).ratio == 0.5
