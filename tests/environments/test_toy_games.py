"""Catch and DeepSea: known optimal values, rules checked against slow hand-written games."""

from __future__ import annotations

import numpy as np
import pytest

from lbc.config import EnvironmentConfig
from lbc.environments.toy import Catch, DeepSea


def chase(frame: np.ndarray) -> np.ndarray:
    """[E] the action that moves the paddle towards the ball; frames [E, 1, rows, columns]."""
    board = frame[:, 0]
    ball = board[:, :-1].any(axis=1).argmax(axis=1)
    paddle = board[:, -1].argmax(axis=1)
    return 1 + np.sign(ball - paddle)


@pytest.mark.parametrize("config", [EnvironmentConfig(), EnvironmentConfig(catch_rows=25, catch_actions=18)])
def test_chasing_the_ball_scores_the_optimal_value(config: EnvironmentConfig) -> None:
    catch = Catch(config, 64)
    step = catch.reset(0)
    score = np.zeros(64)
    for _ in range(config.catch_rows - 1):
        assert not step.terminated.any()
        step = catch.step(chase(step.frame))
        score += step.reward
    assert step.terminated.all()
    np.testing.assert_array_equal(score, catch.optimal_value)


def test_catch_falls_straight_and_misses_cost_one() -> None:
    catch = Catch(EnvironmentConfig(catch_rows=6, catch_columns=5, catch_actions=4), 64)
    step = catch.reset(3)
    start = step.frame[:, 0, 0].argmax(axis=1)
    assert set(start) == set(range(5)), "every column is a start"
    np.testing.assert_array_equal(step.frame[:, 0, -1].argmax(axis=1), 2)
    paddle = np.full(64, 2)
    for row in range(1, 6):
        actions = np.random.default_rng(row).integers(0, 4, 64)
        step = catch.step(actions)
        paddle = np.clip(paddle + np.array([-1, 0, 1, 0])[actions], 0, 4)
        expected = np.zeros((64, 6, 5), np.float32)
        expected[np.arange(64), row, start] = 1
        expected[np.arange(64), 5, paddle] = 1
        np.testing.assert_array_equal(step.frame[:, 0], expected)
    np.testing.assert_array_equal(step.reward, np.where(paddle == start, 1, -1))
    assert (step.reward == 1).any() and (step.reward == -1).any()


def test_catch_draws_every_column_equally_often() -> None:
    """Chi-square over 5 columns and 32,000 balls; 18.5 is the 0.999 quantile with 4 degrees of freedom."""
    catch = Catch(EnvironmentConfig(catch_rows=3, catch_columns=5), 4000)
    step = catch.reset(0)
    counts = np.zeros(5)
    columns = []
    for _ in range(8):
        columns.append(step.frame[:, 0, 0].argmax(axis=1))
        counts += np.bincount(columns[-1], minlength=5)
        for _ in range(3):
            step = catch.step(np.ones(4000, np.int64))
        assert step.first.all()
    assert ((counts - 6400) ** 2 / 6400).sum() < 18.5
    same_as_before = np.mean(columns[0] == columns[1])
    same_as_neighbour = np.mean(columns[0][1:] == columns[0][:-1])
    assert same_as_before == pytest.approx(0.2, abs=0.03)
    assert same_as_neighbour == pytest.approx(0.2, abs=0.03)


def test_catch_time_limit_is_truncation_but_landing_is_not() -> None:
    def ends(limit: int) -> tuple[bool, bool]:
        catch = Catch(EnvironmentConfig(catch_rows=5, max_episode_steps=limit), 1)
        catch.reset(0)
        while True:
            step = catch.step(np.array([1]))
            if step.terminated[0] or step.truncated[0]:
                return bool(step.terminated[0]), bool(step.truncated[0])

    assert ends(3) == (False, True)
    assert ends(4) == (True, False), "termination wins when both fall on one step"
    assert ends(9) == (True, False)


@pytest.mark.parametrize("depth", [2, 10, 25])
def test_always_right_scores_the_optimal_value(depth: int) -> None:
    sea = DeepSea(EnvironmentConfig(id="deepsea", deepsea_depth=depth), 3)
    step = sea.reset(0)
    score = np.zeros(3)
    for row in range(depth):
        np.testing.assert_array_equal(step.frame.reshape(3, -1).argmax(axis=1), row * depth + row)
        assert step.frame.sum() == 3
        step = sea.step(sea.optimal_actions())
        score += step.reward
        assert step.terminated.all() == (row == depth - 1)
    np.testing.assert_allclose(score, sea.optimal_value, rtol=0, atol=1e-6)
    assert not step.frame.any(), "the final observation lies below the sea"


def test_left_is_free_and_the_way_to_the_treasure_is_unique() -> None:
    depth = 4
    paths = 2**depth
    sea = DeepSea(EnvironmentConfig(id="deepsea", deepsea_depth=depth), paths)
    right = (np.arange(paths)[:, None] >> np.arange(depth)) & 1  # [paths, depth] every sequence of moves
    sea.reset(0)
    score = np.zeros(paths)
    for move in right.T:
        score += sea.step(np.where(move, sea.optimal_actions(), 1 - sea.optimal_actions())).reward
    expected = -0.01 / depth * right.sum(axis=1)
    expected[-1] += 1.0
    np.testing.assert_allclose(score, expected, atol=1e-6)


def test_the_sea_is_one_fixed_place_where_right_is_not_one_action() -> None:
    def rights(num_envs: int, seed: int) -> list[int]:
        sea = DeepSea(EnvironmentConfig(id="deepsea"), num_envs)
        sea.reset(seed)
        found = []
        for _ in range(10):
            found.append(int(sea.optimal_actions()[-1]))
            sea.step(sea.optimal_actions())
        return found

    assert rights(1, 0) == rights(4, 99)
    assert set(rights(1, 0)) == {0, 1}
