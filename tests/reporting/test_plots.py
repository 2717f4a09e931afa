import json
from pathlib import Path

from lbc.reporting import learning_curve


def write_run(path: Path, scores: list[float | None]) -> Path:
    reports = [
        {"frames": 1000 * i, "score_mean": score, "score_max": score, "behavior_entropy": 1.0 / (1 + i)}
        for i, score in enumerate(scores)
    ]
    path.write_text("".join(json.dumps(report) + "\n" for report in reports))
    return path


def test_one_run_gives_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    assert learning_curve(write_run(tmp_path / "a", [None, 0.5, 1.0]), picture, "a run")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_several_runs_of_different_length_give_one_picture(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", [0.0, 1.0, 2.0]), write_run(tmp_path / "b", [1.0, 2.0])]
    assert learning_curve(runs, tmp_path / "curve.png", "two runs")


def test_a_single_report_is_still_drawn(tmp_path: Path) -> None:
    assert learning_curve(write_run(tmp_path / "a", [1.0]), tmp_path / "curve.png", "short")


def test_nothing_is_drawn_before_an_episode_has_ended(tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    assert not learning_curve(write_run(tmp_path / "a", [None, None]), picture, "empty")
    assert not learning_curve(tmp_path / "absent", picture, "absent")
    assert not picture.exists()
