"""Agents as small folders, and those that come with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lbc.agents import directory_of, evaluate, load_agent, place_for, trained_agents
from lbc.cli import main
from lbc.errors import UserError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("folder") / "catch"
    assert main(["train", "catch", "--frames", "3000", "--out", str(path)]) == 0
    return path


def _actions(agent):
    frames, state, actions = np.random.default_rng(1).random((40, *agent.spec.frame_shape)), None, []
    for frame in frames:
        action, state = agent.act(frame.astype(np.float32), state, reward=0.5)
        actions.append(action)
    return actions


def test_a_folder_plays_as_its_run_does(run, tmp_path, capsys):
    assert main(["export", str(run), "--format", "lbc", "--out", str(tmp_path / "agent")]) == 0
    assert "catch" in capsys.readouterr().out
    ours, theirs = load_agent(run, "cpu"), load_agent(tmp_path / "agent", "cpu")
    assert theirs.frames == ours.frames and theirs.config == ours.config
    np.testing.assert_array_equal(theirs.favourite, ours.favourite)
    assert _actions(ours) == _actions(theirs)
    assert len(evaluate(theirs, 4)["favourite"].episodes) == 4
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    names = ("config.toml", "summary.json", "checkpoints/weights.safetensors")
    assert files == {f"agent/{name}" for name in names}


def test_nothing_is_overwritten(run, capsys):
    assert main(["export", str(run), "--format", "lbc", "--out", str(run)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_component_alone_is_no_folder(run, tmp_path, capsys):
    words = ["export", str(run), "--format", "lbc", "--component", "1", "--out", str(tmp_path / "x")]
    assert main(words) == 2
    assert "leave the component out" in capsys.readouterr().err


def test_names_of_the_agents_that_come_with_lbc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "pong" in trained_agents()
    for name in trained_agents():
        assert load_agent(name, "cpu").frames > 0
        assert sum(path.stat().st_size for path in directory_of(name).rglob("*")) < 10_000_000
    (tmp_path / "pong").mkdir()
    with pytest.raises(UserError, match="'pong' holds no run"):
        directory_of("pong")  # the user's own folder goes before ours
    with pytest.raises(UserError, match=r"'pnog' holds no run; .* pong\..*Did you mean 'pong'"):
        directory_of("pnog")


def test_evaluations_stay_with_their_run(run, capsys):
    assert main(["eval", str(run), "--episodes", "3", "--json"]) == 0
    assert (run / "eval.json").read_text() == capsys.readouterr().out


def test_what_is_made_of_an_agent_of_ours_goes_into_the_present_folder(run):
    assert place_for(run, "play.gif") == run / "play.gif"
    for name in trained_agents():
        assert place_for(name, "play.gif") == Path(f"{name}.gif")


def test_training_can_end_in_a_film(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["train", "catch", "--frames", "300", "--out", str(out), "--film"]) == 0
    assert (out / "play.gif").read_bytes()[:4] == b"GIF8"
    assert "play.gif" in capsys.readouterr().out
