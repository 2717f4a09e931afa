import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.reporting.plain import plain


def test_plain_values() -> None:
    metrics = {
        "nan": math.nan,
        "infinity": np.float32(math.inf),
        "count": np.int64(3),
        "flag": np.bool_(True),
        "array": np.array([1.0, math.nan]),
        "tensor": torch.tensor([[1, 2]]),
        "scalar": torch.tensor(0.5),
        "tuple": (1, "a", None),
        3: Path("x"),
    }
    assert plain(metrics) == {
        "nan": None,
        "infinity": None,
        "count": 3,
        "flag": True,
        "array": [1.0, None],
        "tensor": [[1, 2]],
        "scalar": 0.5,
        "tuple": [1, "a", None],
        "3": "x",
    }
    json.dumps(plain(metrics), allow_nan=False)


def test_metrics_are_on_disk_line_by_line(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "deep" / "run")
    directory.create("[run]\n")
    for frames in (1, 2):
        directory.append({"frames": frames, "score_mean": math.nan})
        assert read_metrics(directory.metrics)[-1] == {"frames": frames, "score_mean": None}
    assert len(directory.metrics.read_text().splitlines()) == 2
    assert directory.config.read_text() == "[run]\n"
    assert directory.checkpoints.is_dir()


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"frames": 1}\n{"frames": 2}\n{"fra')
    assert read_metrics(path) == [{"frames": 1}, {"frames": 2}]
    assert read_metrics(tmp_path / "absent.jsonl") == []


@pytest.mark.parametrize("name", ["config.toml", "metrics.jsonl"])
def test_another_run_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(UserError, match="already holds a run; choose another"):
        RunDirectory(tmp_path).create("")
    assert (tmp_path / name).read_text() == "precious"


def test_a_path_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot hold a run"):
        RunDirectory(tmp_path / "file" / "run").create("")


def test_what_is_no_report_is_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [b'{"frames": 1}', b"\xff\xfe{", b"[" * 100_000, b"7", b"9" * 5000, b'{"frames": 2}', b'{"fra']
    path.write_bytes(b"\n".join(lines))
    assert read_metrics(path) == [{"frames": 1}, {"frames": 2}]
