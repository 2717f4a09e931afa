import io
import json
from pathlib import Path

import pytest

from lbc.errors import UserError
from lbc.reporting import RunDirectory, RunReporter
from lbc.reporting.console import closing_lines, header_lines, sparkline
from lbc.types import ProgressSnapshot


def test_sparkline() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5.0, 5.0]) == "▁▁"
    assert sparkline([]) == ""
    assert sparkline([0.0] * 50 + [1.0] * 50, width=4) == "▁▁██"


def test_header_leaves_out_what_is_unknown() -> None:
    lines = header_lines({"category": "LBC", "updates_planned": 15625, "budget": None}, Path("runs/a"))
    assert [line.split() for line in lines] == [
        ["category", "LBC"],
        ["updates", "planned", "15,625"],
        ["directory", "runs/a"],
    ]


def test_last_words() -> None:
    reports = [{"score_mean": None}, {"score_mean": 1.0}, {"score_mean": 4.0}, {"score_mean": 3.0}]
    summary = {
        "frames": 2000,
        "updates": 30,
        "episodes": 4,
        "seconds": 61.0,
        "favourite_tau": [1.0, 2.0],
        "favourite_omega": [0.25, 0.75],
    }
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    lines = closing_lines(summary, reports, Path("curve.png"), ascii_stream)
    assert lines == [
        "score    1.00 -> 3.00  (best 4.00)  _@*",
        "run      2,000 frames, 30 updates, 4 episodes in 1:01",
        "favours  tau (1.00, 2.00), omega (0.25, 0.75)",
        "curve    curve.png",
    ]
    assert "no episode has ended" in closing_lines({}, [], None, ascii_stream)[0]


def test_a_whole_run(tmp_path: Path) -> None:
    directory, stream = RunDirectory(tmp_path / "run"), io.StringIO()
    with RunReporter(directory, "[run]\n", "title", stream) as reporter:
        assert not directory.path.exists()
        reporter.start({"category": "LBC"})
        reporter.progress(ProgressSnapshot(0.5, 10, 1.0, 10.0, 1, 0.0, 0.5))
        for frames in (10, 20):
            reporter.report({"frames": frames, "score_mean": frames / 10, "behavior_entropy": 0.5})
        reporter.finish({"frames": 20, "seconds": 2.0})
    assert {path.name for path in directory.path.iterdir()} == {
        "config.toml",
        "metrics.jsonl",
        "tensorboard",
        "checkpoints",
        "machine.json",
        "summary.json",
        "learning_curve.png",
    }
    assert json.loads(directory.summary.read_text())["frames"] == 20
    assert "LBC" in stream.getvalue()
    assert "score    1.00 -> 2.00" in stream.getvalue()


def test_a_directory_with_a_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(UserError, match="already holds a run"):
        RunReporter(RunDirectory(tmp_path), "", "title")
