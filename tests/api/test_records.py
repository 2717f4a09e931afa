"""Tables of what runs said: finished, running, damaged, archived, foreign."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import lbc
from lbc.errors import UserError

pandas = pytest.importorskip("pandas")
ARCHIVE = Path(__file__).parents[2] / "results" / "minatar-breakout"


def test_a_finished_run(catch):
    record = lbc.load_run(catch.path)
    last = json.loads((catch.path / "metrics.jsonl").read_text().splitlines()[-1])
    row = record.metrics.iloc[-1]
    assert row["score_mean"] == last["score_mean"] and row["time/inference"] == last["time"]["inference"]
    assert row["policy/2/target_entropy"] == last["policies"][2]["target_entropy"]
    assert record.metrics["frames"].dtype == "int64" and record.metrics["frames"].is_monotonic_increasing
    assert (record.config["run"]["frames"], record.summary["outcome"]) == (16_000, "finished")
    assert (record.seed, record.variant, record.episodes) == (1, "catch-catch", last["episodes"])
    assert str(catch.path) in repr(record) and len(repr(record)) < 300


def test_regions_are_a_table_of_their_own(catch):
    record = lbc.load_run(catch.path)
    regions = record.regions
    last = record.reports[-1]
    assert len(regions) == len(record.reports) * sum(len(d["chosen"]) for d in last["dimensions"])
    one = regions[(regions.frames == last["frames"]) & (regions.dimension == "tau_2")].tail(20)
    assert one.region.tolist() == list(range(20))
    assert one.mean_return.tolist() == last["dimensions"][1]["mean_return"]


def test_a_run_that_is_running_or_was_killed(catch, tmp_path):
    shutil.copytree(catch.path, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"frames": 99999, "score_')
    record = lbc.load_run(tmp_path / "run")
    assert record.summary == {} and len(record.metrics) == len(lbc.load_run(catch.path).metrics)
    (tmp_path / "run" / "metrics.jsonl").unlink()
    begun = lbc.load_run(tmp_path / "run")
    assert len(begun.metrics) == len(begun.regions) == 0 and begun.episodes is None


def test_archived_runs_of_two_programs():
    table = lbc.load_runs(ARCHIVE / "*" / "*")
    assert table.columns[:4].tolist() == ["run", "variant", "seed", "frames"]
    found = table.groupby(["variant", "seed"]).run.nunique()
    assert found.to_dict() == {(v, s): 1 for v in ("LBC-BM", "PPO (Stable-Baselines3)") for s in (3, 4, 5)}
    assert lbc.load_runs(ARCHIVE).equals(table), "a folder of runs is as good as a pattern"
    one = lbc.load_run(ARCHIVE / "ppo" / "seed3")
    assert one.config["ppo"]["n_steps"] == 128 and len(one.regions) == 0
    several = lbc.load_runs([ARCHIVE / "ppo" / "seed3", ARCHIVE / "lbc-bm" / "seed4"])
    assert several.groupby("run").seed.first().tolist() == [4, 3]


def test_foreign_folders_are_told_in_a_sentence(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        lbc.load_run(tmp_path)
    with pytest.raises(UserError, match="there is no run at"):
        lbc.load_runs(tmp_path / "*")
    (tmp_path / "config.toml").write_text("[[[")
    with pytest.raises(UserError, match="not valid TOML"):
        lbc.load_run(tmp_path)
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "metrics.jsonl").write_text('[1]\n"x"\n{"dimensions": [3, {"name": 1, "chosen": [1]}]}\n')
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"frames": 1e300, "deep": ' + "[" * 900 + "1" + "]" * 900 + "}\n")
    record = lbc.load_run(tmp_path)
    assert len(record.metrics) == 2 and record.seed is None
    assert record.regions.chosen.tolist() == [1]
