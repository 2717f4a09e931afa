"""Copies that begin together do not stay together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.environments.workers import WorkerPool
from lbc.interfaces import VectorEnvironment
from lbc.parameters.snapshot import give, take
from lbc.types import EnvironmentStep

LONG_CATCH = EnvironmentConfig(id="catch", catch_rows=25)  # 24 steps of play, one to restart
PONG = EnvironmentConfig(id="ALE/Pong-v5", max_episode_frames=96, image_size=32, threads=1)  # the same


def played(game: VectorEnvironment, steps: int, seed: int = 5) -> list[EnvironmentStep]:
    rows = [_copied(game.reset(seed))]
    return rows + [_copied(game.step(np.ones(game.num_envs, np.int64))) for _ in range(steps)]


def _copied(step: EnvironmentStep) -> EnvironmentStep:
    """A frame is valid only until the next call."""
    return dataclasses.replace(step, frame=step.frame.copy())


def table(rows: list[EnvironmentStep], field: str) -> np.ndarray:
    return np.stack([getattr(row, field) for row in rows])


@pytest.mark.parametrize("config", [LONG_CATCH, PONG], ids=["catch", "pong"])
def test_one_episode_of_each_copy_is_broken_off(config):
    copies, steps = 40, 24
    plain, staggered = make(config, copies), make(config, copies, steps)
    together = table(played(plain, 100), "first")
    rows = played(staggered, 100)
    plain.close()
    staggered.close()

    assert together.any(1).sum() == 5 and (together.all(1) == together.any(1)).all()  # what is to be avoided
    first, ended = table(rows, "first"), table(rows, "terminated") | table(rows, "truncated")
    broken_off = first[1:] & ~ended[:-1]
    assert (broken_off.sum(0) <= 1).all()
    assert broken_off.sum() >= 0.9 * copies  # but for those that end at that very step by themselves
    when = np.argmax(broken_off, axis=0)[broken_off.any(0)] + 1
    assert 1 <= when.min() <= 4 and 20 <= when.max() <= steps
    assert len(set(when)) >= 15
    assert not table(rows, "reward")[first].any()
    assert first[30:].any(1).sum() >= 50  # somebody begins at most steps
    for copy in range(copies):  # whole episodes from then on
        begins = np.flatnonzero(first[when.min() :, copy])
        assert set(np.diff(begins)[1:]) == {25}


def test_frames_after_the_break_are_those_of_a_beginning():
    game = make(LONG_CATCH, 16, 10)
    for row in played(game, 40):
        assert row.frame[row.first, 0, 0].any(axis=-1).all()  # the ball is in the top row


def test_processes_break_off_the_same_episodes():
    alone, pool = make(LONG_CATCH, 8, 20), WorkerPool(LONG_CATCH, 8, workers=2, groups=2, stagger_steps=20)
    try:
        expected = played(alone, 60)
        halves = [played(group, 60) for group in pool.groups]
        for field in ("frame", "reward", "terminated", "first"):
            there = np.concatenate([table(half, field) for half in halves], axis=1)
            np.testing.assert_array_equal(there, table(expected, field))
    finally:
        pool.close()


def test_a_saved_game_goes_on_to_its_break():
    game, other = make(LONG_CATCH, 6, 20), make(LONG_CATCH, 6, 20)
    played(game, 5)
    tensors: dict = {}
    plain = take(game, tensors)
    other.reset(99)
    give(other, plain, tensors)
    assert game.resumable
    for _ in range(40):
        one, two = (g.step(np.ones(6, np.int64)) for g in (game, other))
        np.testing.assert_array_equal(one.frame, two.frame)
        np.testing.assert_array_equal(one.first, two.first)
