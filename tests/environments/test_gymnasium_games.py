"""Gymnasium environments: ends, final observations, spaces, and sentences for what does not fit."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.errors import UserError


def balance(frame: np.ndarray) -> np.ndarray:
    """[E] a hand-made controller that keeps CartPole's pole up."""
    position, speed, angle, turn = frame.T
    return (angle + 0.5 * turn + 0.05 * position + 0.1 * speed > 0).astype(np.int64)


def test_cartpoles_500_steps_are_a_truncation() -> None:
    environment = make(EnvironmentConfig(id="CartPole-v1"), 3)
    step = environment.reset(0)
    for count in range(1, 501):
        step = environment.step(balance(step.frame))
        assert not step.terminated.any()
        assert step.truncated.all() == (count == 500)


@pytest.mark.parametrize("limit", [7, 13])
def test_time_limit_shows_the_true_final_observation(limit: int) -> None:
    seed, copies = 3, 2
    environment = make(EnvironmentConfig(id="CartPole-v1", max_episode_steps=limit), copies)
    by_hand = [gymnasium.make("CartPole-v1") for _ in range(copies)]
    step = environment.reset(seed)
    seen = [game.reset(seed=seed + copy)[0] for copy, game in enumerate(by_hand)]
    for count in range(1, 3 * (limit + 1)):
        np.testing.assert_array_equal(step.frame, np.array(seen, np.float32))
        actions = balance(step.frame)
        step = environment.step(actions)
        if count % (limit + 1) == 0:
            assert step.first.all() and not step.reward.any()
            seen = [game.reset()[0] for game in by_hand]
        else:
            seen = [game.step(int(action))[0] for game, action in zip(by_hand, actions, strict=True)]
            assert step.truncated.all() == (count % (limit + 1) == limit)
            assert (step.reward == 1).all()


def test_falling_over_is_a_termination_with_its_last_observation() -> None:
    environment = make(EnvironmentConfig(id="CartPole-v1"), 1)
    by_hand = gymnasium.make("CartPole-v1")
    by_hand.reset(seed=0)
    environment.reset(0)
    over = False
    while not over:
        observation, _, over, _, _ = by_hand.step(1)
        step = environment.step(np.array([1]))
        np.testing.assert_array_equal(step.frame[0], observation)
    assert step.terminated.all() and not step.truncated.any()
    assert environment.step(np.array([1])).first.all()


def test_game_over_on_the_last_step_of_the_clock_is_a_termination() -> None:
    environment = make(EnvironmentConfig(id="sample_games:vector", max_episode_steps=5), 1)
    environment.reset(0)
    steps = [environment.step(np.array([0])) for _ in range(5)]
    assert steps[-1].terminated.all() and not steps[-1].truncated.any()


def test_vectors_are_floats_and_never_stacked() -> None:
    environment = make(EnvironmentConfig(id="sample_games:vector", frame_stack=4), 2)
    environment.reset(0)
    step = environment.step(np.array([2, 1]))
    assert environment.spec.frame_shape == (2,) and environment.spec.frame_stack == 1
    assert step.frame.dtype == np.float32
    np.testing.assert_array_equal(step.frame[:, 1], 1)
    np.testing.assert_array_equal(step.reward, [2, 1])


def test_images_come_channels_first_and_stacked() -> None:
    environment = make(EnvironmentConfig(id="sample_games:image", frame_stack=3), 2)
    frame = environment.reset(0).frame
    assert environment.spec.frame_shape == (4, 2, 3) and environment.spec.frame_dtype is np.uint8
    assert environment.spec.frame_stack == 3
    assert environment.spec.observation_shape == (12, 2, 3)
    assert (frame[:, 3, 1, 2] == 3).all()
    assert (frame[:, :, 0] != 0).all() and not frame[:, :3, 1].any()


def test_grids_get_one_channel() -> None:
    environment = make(EnvironmentConfig(id="sample_games:grid"), 2)
    frame = environment.reset(0).frame
    assert environment.spec.frame_shape == (1, 2, 3) and frame.shape == (2, 1, 2, 3)
    assert environment.spec.frame_dtype is np.float32 and frame.dtype == np.float32


def test_discrete_spaces_may_start_anywhere() -> None:
    environment = make(EnvironmentConfig(id="sample_games:numbered_from_minus_two"), 2)
    assert environment.spec.frame_shape == (6,) and environment.spec.num_actions == 3
    np.testing.assert_array_equal(environment.reset(0).frame, [[1, 0, 0, 0, 0, 0]] * 2)
    step = environment.step(np.array([0, 2]))
    np.testing.assert_array_equal(step.frame, [[0, 1, 0, 0, 0, 0]] * 2)
    np.testing.assert_array_equal(step.reward, [-1, 1])


@pytest.mark.parametrize(
    ("id", "sentence"),
    [
        ("Pendulum-v1", "environment Pendulum-v1 has continuous actions; choose"),
        ("sample_games:continuous", "has continuous actions"),
        ("sample_games:two_buttons", "only Discrete is supported"),
        ("Blackjack-v1", "no torso fits observation space Tuple.*wrap it"),
        ("sample_games:dictionary", "no torso fits observation space Dict"),
        ("sample_games:float_image", "no torso fits observation space Box"),
        ("sample_games:not_a_game", "must return a gymnasium.Env, not a str"),
        ("sample_games:number", "must name a function or class, not 5"),
        ("sample_games:absent", "has no 'absent'"),
        ("no_such_module:game", "cannot be imported"),
        (":game", "must be written module:factory"),
        ("CartPole", "unknown environment 'CartPole'. Did you mean 'CartPole-v1'"),
        ("Reacher-v2", "cannot be built: .*gymnasium-robotics"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_does_not_fit_is_said_in_a_sentence(id: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make(EnvironmentConfig(id=id), 2)
