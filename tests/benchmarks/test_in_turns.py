"""Two values of one setting, in turns; how fast they are is not looked at."""

from __future__ import annotations

import json

import pytest

from benchmarks import in_turns
from lbc.errors import UserError
from lbc.runtime.crew import Crew
from lbc.runtime.learner_processes import ProcessCrew

SHORT = ("--preset", "catch", "--seconds", "0.3", "--pairs", "2", "--updates", "3")


@pytest.fixture
def asked(monkeypatch):
    """The runs whose rate was measured, in that order."""
    found = []

    def rate(run, seconds, plain=in_turns.rate):
        found.append(run)
        return plain(run, seconds)

    monkeypatch.setattr(in_turns, "rate", rate)
    return found


def test_both_values_train_in_turns(tmp_path, capsys, asked):
    saved, sets = tmp_path / "x.json", ["actor.workers=1", "run.threads=1"]
    chosen = ["run.learner_processes", "false", "true", *SHORT, "--json", str(saved)]
    assert in_turns.main([*chosen, "--set", *sets]) == 0
    pairs = json.loads(saved.read_text())
    assert len(pairs) == 2 and all(pair["false"] > 0 and pair["true"] > 0 for pair in pairs)
    assert [type(run.crew) for run in asked] == [Crew, ProcessCrew, ProcessCrew, Crew]
    assert "true / false" in capsys.readouterr().out


def test_any_setting_and_runtime_will_do(asked):
    chosen = ["run.precision", "float32", "bfloat16", *SHORT, "--runtime", "serial"]
    assert in_turns.main([*chosen, "--set", "run.threads=1"]) == 0
    assert [run.experiment.learners[0].network.mixed for run in asked] == [False, True, True, False]
    assert {run.experiment.config.run.runtime for run in asked} == {"serial"}


def test_a_setting_that_does_not_exist_is_told():
    with pytest.raises(UserError, match="precisoin"):
        in_turns.main(["run.precisoin", "float32", "bfloat16", *SHORT])
