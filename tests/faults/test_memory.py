"""Too little memory is one sentence that says what to do; what was written before is still valid."""

from __future__ import annotations

import multiprocessing

import pytest
import torch

from lbc.cli import main
from lbc.errors import TrainingError
from lbc.learner import Learner
from lbc.parameters import newest
from lbc.runtime import train
from tests.builders import catch_config
from tests.runtime.test_local import local_config
from tests.runtime.test_resume import QUIET, StopAfter
from tests.runtime.test_serial import Notebook

ABSURD = 10**15


@pytest.mark.parametrize("key", ["actor.num_envs", "buffer.sequence_length", "model.torso_units"])
def test_a_run_that_cannot_be_held(key, tmp_path, capsys):
    assert main(["train", "catch", "--set", f"{key}={ABSURD}", "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("lbc: there is not enough memory (") and len(said.splitlines()) == 1
    assert "try smaller actor.num_envs" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("base", [catch_config, local_config])
def test_memory_that_ends_during_training(base, tmp_path, monkeypatch):
    """Here; in a process of its own: tests/runtime/test_learner_processes.py."""
    config = base(run={"frames": 3000, "learner_processes": False, **QUIET})
    first = train(config, Notebook(), tmp_path, StopAfter(100))
    update = Learner.update

    def greedy(self, batch, progress):
        torch.empty(ABSURD)
        return update(self, batch, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "update", greedy)
        with pytest.raises(TrainingError, match=r"not enough memory .*checkpoint .* still valid"):
            train(config, Notebook(), tmp_path, lambda: False, resume=True)
    found, complaints = newest(tmp_path / "checkpoints")
    assert found is not None and not complaints and found.frames == first["frames"]
    assert not multiprocessing.active_children()
    assert train(config, Notebook(), tmp_path, lambda: False, resume=True)["outcome"] == "finished"
