"""The table of one's own runs, and documents that carry it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lbc.cli import main
from lbc.cli.scores import refreshed
from lbc.errors import UserError
from lbc.scores.results import results, results_table
from tests.scores.fake_runs import write_run


def _cells(paths: list[Path]) -> list[dict[str, str]]:
    table = results_table(results(paths))
    names = [heading.name for heading in table.headings]
    return [dict(zip(names, row, strict=True)) for row in table.texts()]


def test_seeds_are_one_row_beside_people_and_the_paper(tmp_path: Path) -> None:
    for seed, scores in ((1, [-20.0, 15.0, 18.0]), (2, [-21.0, -3.0, 12.0])):
        write_run(tmp_path / "pong" / "lbc-bm" / f"seed{seed}", scores, seed=seed)
    (row,) = _cells([tmp_path])
    assert row["task"] == "Pong" and row["agent"] == "lbc-bm"
    assert row["score"] == "15.0 (18.0, 12.0)"
    assert (row["human"], row["world record"], row["LBC in the paper (1B frames)"]) == ("14.6", "21", "21")
    assert row["human level after"].startswith("2K") and row["human level after"].endswith("(1 of 2)")
    assert row["frames"] == "3K"
    assert row["files"].endswith("pong/lbc-bm"), "all seeds lie there"
    assert "evaluation" not in row, "nobody has evaluated"


def test_the_few_games_that_end_first_are_no_level(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [20.0, 3.0, 15.0], settings=("run.score_window=100",))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    told = [line | {"episodes": ended} for line, ended in zip(lines, (2, 150, 300), strict=True)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    assert _cells([run])[0]["human level after"].startswith("3K")


def test_evaluations_of_the_favourite_behavior(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [1.0])
    found = {"ways": {"favourite": {"mean": 19.5, "scores": [19.0, 20.0]}, "component_1": {"mean": 3.0}}}
    (run / "eval.json").write_text(json.dumps(found | {"frames": 1000}))
    assert _cells([run])[0]["evaluation"] == "19.5, 2 episodes"
    (run / "eval.json").write_text(json.dumps(found | {"frames": 500}))
    assert _cells([run])[0]["evaluation"] == "19.5, 2 episodes, at 500", "of an earlier agent"
    for damaged in ('{"ways": {"favourite": {"mean": null}}}', "{", "[]"):
        (run / "eval.json").write_text(damaged)
        assert "evaluation" not in _cells([run])[0]


def test_tasks_without_references_and_other_programs(tmp_path: Path) -> None:
    ours = write_run(tmp_path / "a", [1.0], game="MinAtar/Breakout")
    theirs = tmp_path / "ppo" / "seed1"
    theirs.mkdir(parents=True)
    (theirs / "config.json").write_text('{"env": "MinAtar/Breakout"}')
    (theirs / "metrics.jsonl").write_text('{"frames": 500, "score_mean": 2.0}\n')
    assert [(row["task"], row["agent"], row["score"]) for row in _cells([ours, theirs])] == [
        ("MinAtar/Breakout", "a", "1.00"),
        ("MinAtar/Breakout", "ppo", "2.0"),
    ]


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no directory"):
        results([tmp_path / "nothing"])
    with pytest.raises(UserError, match="holds no run"):
        results([tmp_path])
    with pytest.raises(UserError, match="no episode has ended"):
        results([write_run(tmp_path / "young", [None])])
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "metrics.jsonl").write_text('{"frames": 500, "score_mean": 2.0}\n')
    with pytest.raises(UserError, match="does not say what it played"):
        results([tmp_path / "x"])


def test_a_document_follows_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs" / "a", [-20.0, 7.5])
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- lbc scores runs --own -->\nold\n<!-- end -->\nAfter\n")
    assert main(["scores", "--refresh", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("Before\n<!-- lbc scores runs --own -->\n") and text.endswith(
        "<!-- end -->\nAfter\n"
    )
    assert "| Pong | a | 7.5 |" in text and "| runs/a |" in text and "old" not in text
    assert "1 tables, changed" in capsys.readouterr().out
    assert refreshed(text, tmp_path) == text
    assert main(["scores", "--refresh", str(tmp_path / "none.md")]) == 2
    assert main(["scores", "--own"]) == 2


def test_for_programs_and_what_contradicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", [-20.0, 15.0])
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"score_mean": 3.0}\n')  # says nothing of frames: no report
    assert main(["scores", str(run), "--own", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["score"] == 15.0 and found["frames"] == 2000 and found["game"]["record"] == 21.0
    assert main(["scores", str(run), "--own", "--scoring", "max"]) == 2
    assert "--own has no --scoring" in capsys.readouterr().err
