"""Every row of the table in docs/reliability.md: what happens when a game misbehaves."""

from __future__ import annotations

import json
import math
import multiprocessing
import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch

from lbc.cli import main
from lbc.config import Config, EnvironmentConfig
from lbc.errors import TrainingError, UserError
from lbc.parameters import load_weights, newest
from lbc.runtime import train
from tests.builders import catch_config
from tests.runtime.test_local import local_config
from tests.runtime.test_serial import Notebook

FATAL = {
    "raises": r"failed in step \(ZeroDivisionError: the paddle has no width; .*misbehaving\.py, line \d+\)",
    "nan_reward": "gave a reward that is not finite",
    "reward_beyond_float32": "gave a reward that is not finite",
    "reward_of_text": r"failed in step \(ValueError",
    "nan_observation": "gave an observation that is not finite",
    "infinite_observation": "gave an observation that is not finite",
    "wrong_shape": r"failed in step \(ValueError",
    "wrong_dtype": r"failed in step \(\w*TypeError",
}
FEW = {"reports": 2, "report_seconds": 1e9}
HARMLESS = ("double_precision", "never_ends", "ends_at_once", "reward_of_a_billion")


def config_for(game: str, base: Config) -> Config:
    return replace(base, environment=EnvironmentConfig(id=f"tests.faults.misbehaving:{game}"))


@pytest.mark.parametrize("game", FATAL)
def test_a_serial_run_ends_with_a_sentence_and_a_checkpoint(game, tmp_path):
    config = config_for(game, catch_config(run={"frames": 2000, **FEW}))
    notebook = Notebook()
    with pytest.raises(TrainingError, match=FATAL[game]):
        train(config, notebook, tmp_path, lambda: False)
    found, complaints = newest(tmp_path / "checkpoints")
    assert found is not None and not complaints and found.frames >= 100
    (summary,) = notebook.summaries
    assert summary["outcome"] == "failed" and summary["score_mean"] == 10.0, "whole, good episodes only"


@pytest.mark.parametrize("game", ["raises", "nan_reward", "wrong_shape"])
def test_a_local_run_begins_those_copies_anew(game, tmp_path):
    """Each life of a process has thirty good steps, so that it counts as healthy again; nobody hears of
    the episodes that were cut short."""
    config = config_for(game, local_config(run={"frames": 600, **FEW}))
    notebook = Notebook()
    with pytest.warns(UserWarning, match=r"environment process \d failed(.|\n)*It is replaced"):
        summary = train(config, notebook, tmp_path, lambda: False)
    assert summary["outcome"] == "finished" and summary["score_max"] == summary["score_mean"] == 10.0
    assert not multiprocessing.active_children()


def test_a_local_run_ends_where_a_game_fails_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr("lbc.environments.worker.HEALTHY_STEPS", 1000)
    config = config_for("raises", local_config(run={"frames": 5000, **FEW}))
    with (
        pytest.warns(UserWarning, match="It is replaced"),
        pytest.raises(TrainingError, match=r"no width(.|\n)*failed 4 times in a row"),
    ):
        train(config, Notebook(), tmp_path, lambda: False)
    found, _ = newest(tmp_path / "checkpoints")
    assert found is not None and found.frames > 0
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("game", HARMLESS)
@pytest.mark.parametrize("base", [catch_config, local_config])
def test_training_goes_on(game, base, tmp_path):
    notebook = Notebook()
    config = config_for(game, base(run={"frames": 500, "score_window": 8, **FEW}, learner={"popart": True}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = train(config, notebook, tmp_path, lambda: False)
    assert summary["outcome"] == "finished" and summary["updates"] > 10
    last: dict[str, Any] = notebook.reports[-1]
    assert last["setbacks"] == 0
    for weights in load_weights(tmp_path / "checkpoints" / "weights.safetensors"):
        assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())
    if game == "never_ends":
        assert last["oldest_episode"] > 30 and summary["episodes"] < 20
    if game == "ends_at_once":
        assert summary["score_mean"] == 1.0 and last["episode_steps"] == 1.0
    if game == "reward_of_a_billion":
        assert summary["score_mean"] == 1e10 and math.isfinite(last["policies"][0]["loss_value"])


def test_a_time_limit_ends_what_never_ends(tmp_path):
    config = config_for("never_ends", catch_config(run={"frames": 500, "score_window": 8, **FEW}))
    limited = replace(config, environment=replace(config.environment, max_episode_steps=20))
    assert train(limited, Notebook(), tmp_path, lambda: False)["score_mean"] == 20.0


def test_what_cannot_be_built_is_bad_input(tmp_path):
    with pytest.raises(UserError, match=r"failed in its factory \(KeyError: 'level 3'; .*misbehaving\.py"):
        train(config_for("fails_in_its_factory", catch_config()), Notebook(), tmp_path, lambda: False)


def test_the_command_line_says_it_and_goes_on_later(tmp_path, capsys):
    """Exit code 1 and the sentence; once the game is mended, the run can be resumed."""
    wishes = ["--frames", "800", "--set", "run.threads=1", "buffer.batch_size=4", "actor.num_envs=4"]
    game = ["--env", "tests.faults.misbehaving:nan_reward"]
    assert main(["train", "catch", *game, *wishes, "run.reports=2", "--out", str(tmp_path)]) == 1
    assert "gave a reward that is not finite" in capsys.readouterr().err
    assert json.loads((tmp_path / "summary.json").read_text())["outcome"] == "failed"
    card = tmp_path / "config.toml"
    card.write_text(card.read_text().replace("misbehaving:nan_reward", "misbehaving:double_precision"))
    assert main(["train", "--resume", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "summary.json").read_text())["outcome"] == "finished"
