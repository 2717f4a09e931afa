"""Learners as threads and as processes, in turns; how fast they are is not looked at."""

from __future__ import annotations

import json

from benchmarks import learners
from lbc.runtime.crew import Crew
from lbc.runtime.learner_processes import ProcessCrew


def test_both_ways_train_in_turns(tmp_path, capsys, monkeypatch):
    asked = []

    def rate(run, seconds, plain=learners.rate):
        asked.append(type(run.crew))
        return plain(run, seconds)

    monkeypatch.setattr(learners, "rate", rate)
    saved, sets = tmp_path / "x.json", ["actor.workers=1", "run.threads=1"]
    chosen = ["--preset", "catch", "--seconds", "0.3", "--pairs", "2", "--updates", "3", "--json", str(saved)]
    assert learners.main([*chosen, "--set", *sets]) == 0
    pairs = json.loads(saved.read_text())
    assert len(pairs) == 2 and all(pair["threads"] > 0 and pair["processes"] > 0 for pair in pairs)
    assert asked == [Crew, ProcessCrew, ProcessCrew, Crew]
    assert "processes / threads" in capsys.readouterr().out
