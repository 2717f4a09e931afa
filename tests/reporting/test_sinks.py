import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from lbc.errors import UserError
from lbc.reporting.sinks import TensorBoardSink, make_sinks, scalars, wanted_sinks

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


def test_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorBoard where it is installed; others by the configuration or LBC_WANDB, with their package."""
    monkeypatch.delenv("LBC_WANDB", raising=False)
    assert wanted_sinks(["tensorboard"]) == [("tensorboard", "lbc")]
    monkeypatch.setattr("lbc.reporting.sinks.importlib.util.find_spec", lambda name: name == "mlflow" or None)
    assert wanted_sinks(["tensorboard", "mlflow:comparison", "mlflow"]) == [
        ("mlflow", "comparison"),
        ("mlflow", "lbc"),
    ]
    monkeypatch.setenv("LBC_WANDB", "project")
    with pytest.raises(UserError, match=r"pip install 'lbc\[wandb\]'"):
        wanted_sinks([])
    monkeypatch.setattr("lbc.reporting.sinks.importlib.util.find_spec", lambda name: True)
    assert wanted_sinks(["wandb:project"]) == [("wandb", "project")]


WANDB = """
import json

class Run:
    def __init__(self, **facts):
        self.said = [facts]
    def log(self, metrics, step):
        if len(self.said) > 2:
            raise ConnectionError("the network is gone\\nand more")
        self.said.append([step, metrics])
    def finish(self):
        self.said.append("finished")

runs = []

def init(**facts):
    runs.append(Run(**facts))
    return runs[-1]
"""


def test_a_sink_that_fails_is_told_of_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package with W&B's interface, which loses its network at the third report."""
    (tmp_path / "wandb.py").write_text(WANDB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    sinks = make_sinks(["wandb:project"], tmp_path, "name", "[run]\nseed = 3\n")
    for _ in range(2):
        sinks[0].write(METRICS)
    with pytest.warns(UserWarning, match=r"wandb takes no further report .*the network is gone\)"):
        sinks[0].write(METRICS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sinks[0].write(METRICS)
        sinks[0].close()
    (run,) = sys.modules["wandb"].runs
    assert run.said[0] == {"project": "project", "name": "name", "config": {"run": {"seed": 3}}}
    assert run.said[1] == [640, dict(scalars(METRICS))] and len(run.said) == 3
    sys.modules.pop("wandb")


def test_mlflow_itself_takes_reports_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    sinks = make_sinks(["mlflow:comparison"], tmp_path, "name", "[run]\nseed = 3\n")
    sinks[0].write(METRICS)
    sinks[0].close()
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("comparison").experiment_id])
    assert run.data.params == {"run.seed": "3"} and run.info.status == "FINISHED"
    assert run.data.metrics["policy/1/entropy"] == 0.5


def test_wandb_itself_takes_reports_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "wandb takes no further report")
        sinks = make_sinks(["wandb:project"], tmp_path, "name", "[run]\nseed = 3\n")
        sinks[0].write(METRICS)
        sinks[0].close()
    (log,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    until = time.monotonic() + 30.0  # its own process writes the file
    while b"policy/1/entropy" not in log.read_bytes():
        assert time.monotonic() < until
        time.sleep(0.1)
