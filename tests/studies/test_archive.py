"""Kept runs: small, complete enough for figure and table, and named by their seed."""

from __future__ import annotations

import json

import pytest

from lbc.studies.archive import LINES, POLICY_KEYS, labels, main, reached


def run_directory(path, seed: int, scores: list[float], json_config: bool = False) -> None:
    path.mkdir(parents=True)
    if json_config:
        (path / "config.json").write_text(json.dumps({"seed": seed}))
    else:
        (path / "config.toml").write_text(f"[run]\nseed = {seed}\n")
    (path / "summary.json").write_text("{}")
    lines = [
        {"frames": 1000 * (i + 1), "seconds": 2.0 * i, "score_mean": score, "policies": [{"much": "else"}]}
        for i, score in enumerate(scores)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_kept_runs_draw_the_same_curve(tmp_path, capsys):
    task = tmp_path / "results" / "pong"
    run_directory(tmp_path / "a", 3, [-20.0 + 0.01 * i for i in range(1001)])
    run_directory(tmp_path / "b", 7, [-21.0, -20.0, -19.5], json_config=True)
    assert main(["keep", str(task / "ours"), str(tmp_path / "a")]) == 0
    assert main(["keep", str(task / "theirs"), str(tmp_path / "b")]) == 0
    (task / "theirs" / "label.txt").write_text("PPO\n")
    kept = (task / "ours" / "seed3" / "metrics.jsonl").read_text().splitlines()
    assert len(kept) <= LINES
    assert json.loads(kept[-1]) == {"frames": 1_001_000, "seconds": 2000.0, "score_mean": -10.0}
    assert set(labels(task)) == {"ours", "PPO"}
    figure = tmp_path / "x.png"
    assert main(["draw", str(task), str(figure), "--title", "Pong", "--reference", "-15"]) == 0
    assert figure.stat().st_size > 1000
    text = capsys.readouterr().out
    assert "| ours |" in text and "not reached" in text
    assert main(["draw", str(task), str(figure), "--only", "theirs"]) == 0
    text = capsys.readouterr().out
    assert "| PPO |" in text and "ours" not in text
    assert main(["draw", str(task), str(figure), "--only", "theirs", "hers"]) == 2
    assert "no folder hers" in capsys.readouterr().err


def test_a_second_sitting_that_reports_less_often_keeps_its_curve(tmp_path):
    run_directory(tmp_path / "a", 1, [])
    frames = [*range(1000, 1_000_000, 1000), *range(1_000_000, 2_000_001, 20_000)]
    lines = [json.dumps({"frames": count, "score_mean": 1.0}) for count in frames]
    (tmp_path / "a" / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["keep", str(tmp_path / "label"), str(tmp_path / "a")]) == 0
    text = (tmp_path / "label" / "seed1" / "metrics.jsonl").read_text()
    kept = [json.loads(line)["frames"] for line in text.splitlines()]
    assert sum(count > 1_000_000 for count in kept) == 50  # all of them
    assert len(kept) <= LINES and kept == sorted(kept) and kept[-1] == 2_000_000


def test_what_is_kept_of_each_policy_and_of_reports_without_frames(tmp_path):
    run_directory(tmp_path / "a", 1, [])
    policies = [
        {"target_entropy": 0.123456, "kept_share": 0.7, "policy_units_alive": 0.5, "discount": 0.9, "much": 1}
    ]
    lines = [{"frames": count, "policies": policies} for count in range(1, 300)]
    lines.insert(250, {"x": 1})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "a" / "metrics.jsonl").write_text(text)
    assert main(["keep", str(tmp_path / "label"), str(tmp_path / "a")]) == 0
    text = (tmp_path / "label" / "seed1" / "metrics.jsonl").read_text()
    kept = [json.loads(line) for line in text.splitlines()]
    assert len(kept) <= LINES and kept[0]["frames"] <= 2 and kept[-1]["frames"] == 299
    assert all(set(line["policies"][0]) == set(POLICY_KEYS) for line in kept)


def test_reached_is_the_first_report_at_that_height(tmp_path):
    run_directory(tmp_path / "seed1", 1, [-20.0, -9.0, -12.0, -3.0])
    assert "| x | 0.00M | 2 |" in reached({"x": [tmp_path / "seed1"]}, -10.0)


@pytest.mark.parametrize("missing", ["metrics.jsonl", "config.toml"])
def test_what_cannot_be_kept_is_said(tmp_path, missing, capsys):
    run_directory(tmp_path / "a", 1, [1.0])
    (tmp_path / "a" / missing).unlink()
    (tmp_path / "a" / "summary.json").unlink()
    assert main(["keep", str(tmp_path / "label"), str(tmp_path / "a")]) == 2
    assert "archive:" in capsys.readouterr().err


def test_the_command_is_kept_without_its_place(tmp_path):
    run_directory(tmp_path / "a", 1, [1.0])
    words = "lbc train catch --out '/here/my runs/a' --seed 1 --out=/b"
    (tmp_path / "a" / "machine.json").write_text(json.dumps({"command": words, "torch": "2"}))
    assert main(["keep", str(tmp_path / "label"), str(tmp_path / "a")]) == 0
    kept = json.loads((tmp_path / "label" / "seed1" / "machine.json").read_text())
    assert kept == {"command": "lbc train catch --seed 1", "torch": "2"}


def test_a_run_with_other_settings_is_not_replaced(tmp_path, capsys):
    label = tmp_path / "label"
    runs = (
        ("a", 8, 1, "auto"),
        ("further", 8, 2, "auto"),
        ("other", 4, 1, "auto"),
        ("half", 8, 1, "bfloat16"),
    )
    for name, batch, minutes, precision in runs:
        run_directory(tmp_path / name, 1, [1.0, 2.0 if name == "a" else 3.0])
        settings = f"seed = 1\nminutes = {minutes}\nprecision = '{precision}'\n"
        text = f"[buffer]\nbatch_size = {batch}\n[run]\n{settings}"
        (tmp_path / name / "config.toml").write_text(text)
    assert main(["keep", str(label), str(tmp_path / "a")]) == 0
    assert main(["keep", str(label), str(tmp_path / "further")]) == 0
    kept = (label / "seed1" / "metrics.jsonl").read_text()
    assert "3.0" in kept
    assert main(["keep", str(label), str(tmp_path / "other")]) == 2
    assert "holds another run, whose buffer.batch_size was 8 and not 4" in capsys.readouterr().err
    assert main(["keep", str(label), str(tmp_path / "half")]) == 2
    assert "run.precision was auto and not bfloat16" in capsys.readouterr().err
    assert (label / "seed1" / "metrics.jsonl").read_text() == kept
