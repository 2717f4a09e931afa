"""Agents out of run directories: the weights that were trained, the behavior that was favoured."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from lbc.agents import Scores, evaluate, load_agent
from lbc.cli import main
from lbc.cli.evaluating import _beside_humans, _protocol
from lbc.environments import make
from lbc.errors import UserError
from lbc.parameters import load_weights


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


def test_only_the_ways_that_are_asked_for(run, capsys):
    agent = load_agent(run)
    found = evaluate(agent, episodes=3, ways=["training", "component_2", "training"])
    assert list(found) == ["training", "component_2"] and len(found["training"].episodes) == 3
    with pytest.raises(UserError, match=r"'compnent_2' is no way to play.*component_2"):
        evaluate(agent, ways=["compnent_2"])
    assert main(["eval", str(run), "--episodes", "2", "--ways", "component_1", "favourite", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["ways"]) == ["favourite", "component_1"]
    assert main(["eval", str(run), "--episodes", "3", "--ways", "component_2"]) == 0
    kept = json.loads((run / "eval.json").read_text())["ways"]
    counts = {way: len(found["scores"]) for way, found in kept.items()}
    assert counts == {"favourite": 2, "component_1": 2, "component_2": 3}, "what was played before is kept"
    assert main(["eval", str(run), "--episodes", "2", "--ways", "component_2", "--seed", "1"]) == 0
    assert list(json.loads((run / "eval.json").read_text())["ways"]) == ["component_2"], "other games"


def test_somebody_hears_how_far_it_is(run):
    heard = []
    evaluate(load_agent(run), episodes=3, told=lambda *count: heard.append(count))
    ended, of = zip(*heard, strict=True)
    assert list(ended) == sorted(ended) and ended[-1] == 15 and set(of) == {15}


def test_the_protocol_is_told(run):
    agent = load_agent(run)
    assert _protocol(agent) == {}
    game = dataclasses.replace(agent.config.environment, id="ALE/Pong-v5", sticky_actions=0.25)
    other = dataclasses.replace(agent, config=dataclasses.replace(agent.config, environment=game))
    assert _protocol(other)["max_noops"] == 30 and _protocol(other)["sticky_actions"] == 0.25
    assert "life_information" not in _protocol(other)
    told = dataclasses.replace(game, life_information=True)
    other = dataclasses.replace(agent, config=dataclasses.replace(agent.config, environment=told))
    assert _protocol(other)["life_information"]


def test_scores_by_hand():
    scores = Scores(np.array([1.0, 2.0, 6.0]))
    assert (scores.mean, scores.median, scores.lowest, scores.best) == (3.0, 2.0, 1.0, 6.0)
    assert scores.standard_error == pytest.approx(np.sqrt(7.0 / 3.0))
    assert np.isnan(Scores(np.array([1.0])).standard_error)
    assert scores.different == 3 and Scores(np.array([2.0, 1.0, 2.0])).different == 2
    assert Scores(np.array([2.0, 1.0, 2.0, 2.0]), np.array([9, 9, 8, 9])).different == 3


def test_every_episode_has_its_length(run):
    """Catch lasts until the ball is down, whoever plays."""
    agent = load_agent(run)
    rows = agent.spec.frame_shape[-2]
    for scores in evaluate(agent, episodes=3).values():
        assert scores.steps is not None and scores.steps.tolist() == [rows - 1] * 3


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


def test_the_command_prints_a_table_or_json(run, capsys):
    assert main(["eval", str(run), "--episodes", "2"]) == 0
    shown = capsys.readouterr().out
    rows = [line.split()[0] for line in shown.splitlines()[2:]]
    assert rows == ["favourite", "training", "component_1", "component_2", "component_3"]
    assert main(["eval", str(run), "--episodes", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    favourite = found["ways"]["favourite"]
    assert favourite["mean"] == pytest.approx(np.mean(favourite["scores"]))
    assert len(favourite["steps"]) == 2 and favourite["different"] in (1, 2) and "different" in shown
