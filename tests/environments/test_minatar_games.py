"""MinAtar in a batch is MinAtar played by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from minatar import Environment

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.errors import UserError

GAMES = {
    "Asterix": "asterix",
    "Breakout": "breakout",
    "Freeway": "freeway",
    "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}


def board(game: Environment) -> np.ndarray:
    return game.state().transpose(2, 0, 1) * 255


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", GAMES)
def test_equals_the_game_stepped_by_hand(name: str, full: bool) -> None:
    seed, copies = 5, 2
    environment = make(EnvironmentConfig(id=f"MinAtar/{name}", full_action_space=full), copies)
    by_hand = [
        Environment(GAMES[name], sticky_action_prob=0.1, difficulty_ramping=True) for _ in range(copies)
    ]
    action_set = list(range(6)) if full else by_hand[0].minimal_action_set()
    assert environment.spec.num_actions == len(action_set)
    for copy, game in enumerate(by_hand):
        game.seed(seed + copy)
        game.reset()
    step = environment.reset(seed)
    ended = np.zeros(copies, bool)
    actions = np.random.default_rng(1).integers(0, len(action_set), (500, copies))
    for row in actions:
        np.testing.assert_array_equal(step.frame, [board(game) for game in by_hand])
        step = environment.step(row)
        for copy, game in enumerate(by_hand):
            reward, over = 0, False
            if ended[copy]:
                game.reset()
            else:
                reward, over = game.act(action_set[row[copy]])
            assert (step.reward[copy], step.terminated[copy], step.first[copy]) == (reward, over, ended[copy])
            ended[copy] = over


def test_frames_are_bytes_that_divide_to_zero_and_one() -> None:
    frame = make(EnvironmentConfig(id="MinAtar/Breakout"), 2).reset(0).frame
    assert frame.shape == (2, 4, 10, 10)
    assert frame.flags.c_contiguous
    assert set(np.unique(frame)) == {0, 255}


def test_switches_reach_the_game() -> None:
    config = EnvironmentConfig(id="MinAtar/SpaceInvaders", minatar_sticky=0.0, minatar_ramping=False)
    environment = make(config, 1)
    by_hand = Environment("space_invaders", sticky_action_prob=0.0, difficulty_ramping=False)
    default = make(EnvironmentConfig(id="MinAtar/SpaceInvaders"), 1)
    by_hand.seed(0)
    by_hand.reset()
    environment.reset(0)
    default.reset(0)
    differs_from_default = False
    for action in np.random.default_rng(0).integers(0, 6, 80):
        by_hand.act(action)
        frame = environment.step(np.array([action])).frame[0]
        np.testing.assert_array_equal(frame, board(by_hand))
        differs_from_default |= bool((default.step(np.array([action])).frame[0] != frame).any())
    assert differs_from_default


def test_reset_forgets_the_action_that_would_stick() -> None:
    environment = make(EnvironmentConfig(id="MinAtar/Breakout", minatar_sticky=0.9), 8)
    left, right = np.full(8, 1), np.full(8, 3)
    environment.reset(0)
    frame = environment.step(left).frame
    for _ in range(30):
        environment.step(right)
    environment.reset(0)
    np.testing.assert_array_equal(environment.step(left).frame, frame)


def test_time_limit_is_truncation() -> None:
    environment = make(EnvironmentConfig(id="MinAtar/Freeway", max_episode_steps=7), 2)
    environment.reset(0)
    steps = [environment.step(np.zeros(2, np.int64)) for _ in range(16)]
    assert sum(step.truncated.all() for step in steps) == 2
    assert steps[6].truncated.all() and steps[7].first.all() and steps[14].truncated.all()
    assert not any(step.terminated.any() for step in steps)


def test_unknown_game_names_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'MinAtar/Breakout'"):
        make(EnvironmentConfig(id="MinAtar/breakout"), 1)


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minatar", None)
    with pytest.raises(UserError, match=r"lbc\[minatar\]"):
        make(EnvironmentConfig(id="MinAtar/Breakout"), 1)


def test_actions_have_names():
    """The third action of Breakout's smallest set is right, not up."""
    every = make(EnvironmentConfig(id="MinAtar/Breakout", full_action_space=True), 1)
    needed = make(EnvironmentConfig(id="MinAtar/Breakout", full_action_space=False), 1)
    assert every.action_names == ["noop", "left", "up", "right", "down", "fire"]
    assert needed.action_names == ["noop", "left", "right"]
