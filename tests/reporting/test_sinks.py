from pathlib import Path

import numpy as np
import pytest

from lbc.errors import UserError
from lbc.reporting.sinks import TensorBoardSink, make_sinks, scalars, wandb_project

METRICS = {
    "frames": 640,
    "score_mean": float("nan"),
    "policies": [{"entropy": 1.5, "kl": [0.1, 0.2]}, {"entropy": 0.5, "kl": []}],
    "dimensions": [{"name": "tau_1", "pulls": np.arange(20), "votes_entropy": 2.0}],
    "note": "text",
}


def test_nested_metrics_become_paths() -> None:
    assert dict(scalars(METRICS)) == {
        "frames": 640,
        "policy/0/entropy": 1.5,
        "policy/0/kl/0": 0.1,
        "policy/0/kl/1": 0.2,
        "policy/1/entropy": 0.5,
        "dimension/tau_1/votes_entropy": 2.0,
    }


def test_tensorboard_events_can_be_read_back(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    sink = TensorBoardSink(tmp_path)
    sink.write(METRICS)
    sink.close()
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    (event,) = events.Scalars("policy/1/entropy")
    assert (event.step, event.value) == (640, 0.5)


def test_wandb_is_used_only_where_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LBC_WANDB", raising=False)
    assert wandb_project() is None
    sinks = make_sinks(tmp_path, "name")
    assert [type(sink) for sink in sinks] == [TensorBoardSink]
    sinks[0].close()
    monkeypatch.setenv("LBC_WANDB", "project")
    monkeypatch.setattr("lbc.reporting.sinks.importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'lbc\[wandb\]'"):
        wandb_project()
