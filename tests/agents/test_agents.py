"""Agents out of run directories: the weights that were trained, the behavior that was favoured."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from lbc.agents import Scores, evaluate, load_agent
from lbc.agents.film import Sheet, play
from lbc.cli import main
from lbc.cli.evaluating import _beside_humans
from lbc.environments import make
from lbc.errors import UserError
from lbc.parameters import load_weights


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Catch, until it plays better than chance."""
    path = tmp_path_factory.mktemp("agents") / "run"
    assert main(["train", "catch", "--frames", "30000", "--out", str(path)]) == 0
    return path


def test_it_has_the_run_s_weights_and_favourite(run):
    agent = load_agent(run)
    stored = load_weights(run / "checkpoints" / "weights.safetensors")
    for network, weights in zip(agent.networks, stored, strict=True):
        for name, tensor in network.state_dict().items():
            assert (tensor == weights[name]).all(), name
    summary = json.loads((run / "summary.json").read_text())
    np.testing.assert_allclose(agent.favourite, [*summary["favourite_tau"], *summary["favourite_omega"]])
    assert agent.frames == summary["frames"]


def test_act_plays_as_the_evaluation_does(run):
    """Episodes by hand: about as many balls are caught as in the evaluation, and more than by chance."""
    agent = load_agent(run)
    environment, caught = make(agent.config.environment, 1), []
    seen = environment.reset(5)
    episode, action = None, 0
    for seed in range(40):
        action, episode = agent.act(seen.frame[0], seed=seed)
        while True:
            seen = environment.step(np.array([action]))
            if seen.terminated[0] or seen.truncated[0]:
                caught.append(float(seen.reward[0]))
                seen = environment.step(np.array([0]))  # the next episode's first frame
                break
            action, episode = agent.act(seen.frame[0], episode, reward=float(seen.reward[0]))
    ways = evaluate(agent, episodes=40)
    assert np.mean(caught) > 0.0, "chance is about -0.6"
    assert abs(np.mean(caught) - ways["favourite"].mean) < 0.5


def test_every_way_is_played_as_often_as_asked(run):
    ways = evaluate(load_agent(run), episodes=3)
    assert set(ways) == {"favourite", "training", "component_1", "component_2", "component_3"}
    assert all(len(scores.episodes) == 3 for scores in ways.values())
    again = evaluate(load_agent(run), episodes=3)
    assert all((ways[way].episodes == again[way].episodes).all() for way in ways), (
        "the same seed, the same games"
    )


def test_scores_by_hand():
    scores = Scores(np.array([1.0, 2.0, 6.0]))
    assert (scores.mean, scores.median, scores.lowest, scores.best) == (3.0, 2.0, 1.0, 6.0)
    assert scores.standard_error == pytest.approx(np.sqrt(7.0 / 3.0))
    assert np.isnan(Scores(np.array([1.0])).standard_error)


def test_without_a_checkpoint_weights_and_summary_are_enough(run, tmp_path):
    for name in ("config.toml", "summary.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    (tmp_path / "checkpoints").mkdir()
    weights = "checkpoints/weights.safetensors"
    (tmp_path / weights).write_bytes((run / weights).read_bytes())
    agent = load_agent(tmp_path)
    np.testing.assert_allclose(agent.favourite, load_agent(run).favourite)
    assert "training" not in evaluate(agent, episodes=2)


def test_a_compact_checkpoint_is_enough(tmp_path):
    settings = ["--set", "run.checkpoint_form=compact", "--frames", "3000", "--out", str(tmp_path / "run")]
    assert main(["train", "catch", *settings]) == 0
    assert not (tmp_path / "run" / "checkpoints" / "weights.safetensors").exists()
    assert len(evaluate(load_agent(tmp_path / "run"), episodes=2)) == 5


@pytest.mark.parametrize("damage", ["nothing", "foreign", "no weights", "cut weights", "other network"])
def test_bad_directories_get_one_sentence(run, tmp_path, capsys, damage):
    if damage != "nothing":
        text = (run / "config.toml").read_text()
        text = text.replace("torso_units = ", "torso_units = 1") if damage == "other network" else text
        (tmp_path / "config.toml").write_text("[[[" if damage == "foreign" else text)
    if damage in ("cut weights", "other network"):
        (tmp_path / "checkpoints").mkdir()
        data = (run / "checkpoints" / "weights.safetensors").read_bytes()
        (tmp_path / "checkpoints" / "weights.safetensors").write_bytes(
            data[:500] if damage == "cut weights" else data
        )
    assert main(["eval", str(tmp_path), "--episodes", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lbc: ") and said.count("\n") == 1


def test_wrong_frames_and_counts_are_refused(run):
    agent = load_agent(run)
    with pytest.raises(UserError, match="shape"):
        agent.act(np.zeros((2, 2), np.float32))
    with pytest.raises(UserError, match="episodes"):
        evaluate(agent, episodes=0)


def test_scores_stand_beside_humans_where_there_are_references():
    scores = Scores(np.array([19.2]))
    found = _beside_humans("ALE/Pong-v5", scores)
    assert found["human_normalised"] == pytest.approx(113.03, abs=0.01)
    assert found["record_normalised"] == pytest.approx(100.0 * (19.2 + 20.7) / 41.7)
    assert _beside_humans("catch", scores) == {}


def test_a_film_shows_one_episode_and_who_steers(run):
    agent = load_agent(run)
    scenes = list(play(agent, seed=3))
    assert [scene.step for scene in scenes] == list(range(len(scenes)))
    assert abs(scenes[-1].score) == 1.0 and all(scene.score == 0.0 for scene in scenes[:-1])
    for scene in scenes:
        np.testing.assert_allclose(scene.components.sum(-1), 1.0, rtol=1e-5)
        m = len(scene.components)
        np.testing.assert_allclose(scene.psi[m:] @ scene.components, scene.mu, atol=1e-5)
        expected = scene.psi[m:] * scene.components[:, scene.action] / scene.mu[scene.action]
        np.testing.assert_allclose(scene.steering, expected, atol=1e-4)
    assert len(list(play(agent, seed=3, steps=4))) == 4


def test_the_film_is_a_file(run, tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    out = tmp_path / "new" / "film.gif"
    assert main(["play", str(run), "--out", str(out), "--way", "component_2", "--steps", "5"]) == 0
    with image.open(out) as film:
        assert film.n_frames == 5 and film.size[0] > film.size[1]
    assert "5 steps of catch" in capsys.readouterr().out
    for wrong in (["--out", str(tmp_path / "film.avi")], ["--way", "favorite"], ["--steps", "0"]):
        assert main(["play", str(run), *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("shape", [(1, 84, 84), (4, 10, 10), (6,)])
def test_every_kind_of_frame_can_be_drawn(run, shape):
    pytest.importorskip("PIL.Image")
    agent = load_agent(run)
    scene = next(iter(play(agent)))
    other = dataclasses.replace(scene, frame=np.random.default_rng(0).random(shape))
    sheet = Sheet(agent)
    assert (
        sheet.draw(other).tobytes() != sheet.draw(dataclasses.replace(other, frame=0 * other.frame)).tobytes()
    )


def test_the_command_prints_a_table_or_json(run, capsys):
    assert main(["eval", str(run), "--episodes", "2"]) == 0
    shown = capsys.readouterr().out
    assert "favourite" in shown and "component_3" in shown
    assert main(["eval", str(run), "--episodes", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ways"]["favourite"]["mean"] == pytest.approx(np.mean(found["ways"]["favourite"]["scores"]))
