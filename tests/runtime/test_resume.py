"""A resumed run is the run that was never interrupted, bit for bit, wherever the games can be saved."""

from __future__ import annotations

import errno
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lbc.config import Config, EnvironmentConfig, ModelConfig
from lbc.errors import TrainingError, UserError
from lbc.parameters import load_weights
from lbc.reporting.plain import plain  # no NaN: it never equals itself
from lbc.runtime import train
from tests.builders import catch_config
from tests.runtime.test_local import local_config
from tests.runtime.test_serial import Notebook

TIMES = {"seconds", "frames_per_second", "time"}  # what no two runs share
QUIET = {"report_seconds": 1e9, "checkpoint_seconds": 1e9, "reports": 20}


def config_for(game: str, frames: int) -> Config:
    config = catch_config(
        run={"frames": frames, **QUIET}, target={"policy": "scale_free"}, learner={"popart": True}
    )
    if game == "catch":
        return config
    torso = "minatar" if game.startswith("MinAtar") else "mlp"
    return replace(
        config,
        environment=EnvironmentConfig(id=game),
        model=ModelConfig(torso=torso, torso_units=12, lstm_units=8, head_units=8),
    )


class StopAfter:
    """Asks the loop to stop at its n-th question."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def told(notebook: Notebook) -> list[dict[str, Any]]:
    return [plain({k: v for k, v in report.items() if k not in TIMES}) for report in notebook.reports]


def weights_of(path: Path) -> list[dict[str, torch.Tensor]]:
    return load_weights(path / "checkpoints" / "weights.safetensors")


@pytest.mark.parametrize(
    ("game", "frames", "stops"),
    [
        ("catch", 2000, (137, 260, 1)),
        ("deepsea", 1500, (101,)),
        ("CartPole-v1", 1500, (150, 90)),
        ("MountainCar-v0", 1000, (77,)),
        ("MinAtar/Breakout", 1200, (120,)),
        ("MinAtar/Asterix", 1200, (150,)),
        ("MinAtar/Seaquest", 800, (99,)),
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one(game, frames, stops, tmp_path):
    config = config_for(game, frames)
    whole = Notebook()
    train(config, whole, tmp_path / "whole", lambda: False)
    pieces = Notebook()
    summary = train(config, pieces, tmp_path / "pieces", StopAfter(stops[0]))
    assert summary["outcome"] == "interrupted"
    for steps in stops[1:]:
        train(config, pieces, tmp_path / "pieces", StopAfter(steps), resume=True)
    summary = train(config, pieces, tmp_path / "pieces", lambda: False, resume=True)
    assert summary["outcome"] == "finished"
    assert told(pieces) == told(whole)
    for one, other in zip(weights_of(tmp_path / "whole"), weights_of(tmp_path / "pieces"), strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_reports_right_after_a_resume_know_the_schedules(tmp_path):
    """Bonus and discount are those of the last update, also where a report comes before the next one."""
    config = catch_config(
        run={"frames": 600, **QUIET, "reports": 100},
        population={"first_discounts": (0.5, 0.6, 0.7)},
        learner={"entropy_scaling": 0.1, "entropy_schedule": "linear"},
    )
    whole, pieces = Notebook(), Notebook()
    train(config, whole, tmp_path / "whole", lambda: False)
    train(config, pieces, tmp_path / "pieces", StopAfter(30))
    for steps in (1, 1, 9, 1):
        train(config, pieces, tmp_path / "pieces", StopAfter(steps), resume=True)
    train(config, pieces, tmp_path / "pieces", lambda: False, resume=True)
    assert told(pieces) == told(whole)
    found = [
        report["policies"][0]["discount"] for report in told(whole) if "discount" in report["policies"][0]
    ]
    assert found[0] < 0.9 and found[-1] == 0.997 and found == sorted(found)


def test_a_local_run_goes_on_with_its_counters_weights_and_bandits(tmp_path):
    config = local_config(run={"frames": 1800, **QUIET})
    first = train(config, Notebook(), tmp_path, StopAfter(300))
    notebook = Notebook()
    before = weights_of(tmp_path)
    started: list[dict[str, Any]] = []

    class Look(Notebook):
        def start(self, header: dict[str, Any]) -> None:
            started.append(header)

    second = train(config, Look(), tmp_path, StopAfter(1), resume=True)
    assert started and second["frames"] >= first["frames"] and second["updates"] >= first["updates"]
    assert second["episodes"] == first["episodes"], "unfinished episodes restart and are not reported"
    after = weights_of(tmp_path)
    assert all(torch.equal(a[name], b[name]) for a, b in zip(before, after, strict=True) for name in a)
    last = train(config, notebook, tmp_path, lambda: False, resume=True)
    assert last["outcome"] == "finished" and last["frames"] >= 1800
    assert last["seconds"] > second["seconds"]


def test_nothing_to_resume_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="no checkpoint that can be read"):
        train(catch_config(), Notebook(), tmp_path, lambda: False, resume=True)


def test_another_configuration_does_not_fit(tmp_path):
    train(catch_config(run={"frames": 300, **QUIET}), Notebook(), tmp_path, lambda: False)
    other = catch_config(model={"lstm_units": 4}, run={"frames": 600, **QUIET})
    with pytest.raises(UserError, match="does not fit this run"):
        train(other, Notebook(), tmp_path, lambda: False, resume=True)


def test_a_full_disk_ends_the_run_with_a_sentence_and_leaves_no_process(tmp_path, monkeypatch):
    """The checkpoint before it stays valid, and the run goes on from there once there is room."""
    config = local_config(run={"frames": 4000, **QUIET})
    first = train(config, Notebook(), tmp_path, StopAfter(200))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("lbc.parameters.store.os.fsync", full)
        with pytest.raises(TrainingError, match=r"No space left on device"):
            train(config, Notebook(), tmp_path, StopAfter(50), resume=True)
    assert not multiprocessing.active_children()
    again = train(config, Notebook(), tmp_path, StopAfter(1), resume=True)
    assert again["episodes"] == first["episodes"]
