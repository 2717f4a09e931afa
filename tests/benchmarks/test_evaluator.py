"""Training beside its evaluator and without it, in one run; how fast is not looked at."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from benchmarks import evaluator


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_stops_the_evaluator_and_lets_it_go_on(tmp_path, capsys, monkeypatch):
    sent, kill = [], os.kill
    monkeypatch.setattr(evaluator.os, "kill", lambda pid, number: (sent.append(number), kill(pid, number)))
    saved, sets = tmp_path / "x.json", ["run.evaluation_episodes=2", "actor.workers=1", "run.threads=1"]
    chosen = ["--preset", "catch", "--seconds", "0.5", "--pairs", "2", "--json", str(saved)]
    assert evaluator.main([*chosen, "--set", *sets]) == 0
    pairs = json.loads(saved.read_text())
    assert len(pairs) == 2 and all(pair["without"] > 0 and pair["beside"] > 0 for pair in pairs)
    assert "2 pairs" in capsys.readouterr().out
    stop, go_on = signal.SIGSTOP, signal.SIGCONT
    turns = [number for number in sent if number != signal.SIGKILL]  # which is how the run closes it
    assert turns == [stop, go_on, go_on, stop, go_on], "in turns, and at the end it is not left standing"
    with pytest.raises(SystemExit):
        evaluator.main(["--preset", "atari-laptop"])


def test_core_seconds_are_those_of_the_process():
    before = evaluator.core_seconds(os.getpid())
    sum(range(3_000_000))
    if sys.platform == "linux":
        assert evaluator.core_seconds(os.getpid()) > before
