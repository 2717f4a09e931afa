"""Copies that are stepped apart are those of one environment, and stand still when nobody asks them."""

from __future__ import annotations

import numpy as np
import pytest

from lbc import environments
from lbc.config import EnvironmentConfig
from lbc.environments import Apart, make, make_apart
from lbc.types import EnvironmentStep

BOXING = EnvironmentConfig(id="ALE/Boxing-v5", image_size=32, threads=2, max_episode_frames=80)
COPIES, STEPS = 5, 45  # two episodes and a half
ACTIONS = np.random.default_rng(0).integers(18, size=(STEPS, COPIES))


def the_same(a: EnvironmentStep, b: EnvironmentStep) -> None:
    for name in ("reward", "terminated", "truncated", "first", "lost"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    over = b.terminated | b.truncated
    np.testing.assert_array_equal(a.frame[~over], b.frame[~over])


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_apart_they_play_what_they_play_together(at_once):
    apart = make_apart(BOXING, COPIES)
    assert isinstance(apart, Apart)
    apart._at_once = at_once
    together = make(BOXING, COPIES)
    for seed in (3, 4):  # and once more after a reset
        the_same(apart.reset(seed), together.reset(seed))
        ends = 0
        for actions in ACTIONS:
            seen = together.step(actions)
            the_same(apart.step(actions), seen)
            ends += int(seen.truncated.sum())
        assert ends == 2 * COPIES
    apart.close()
    together.close()


def test_whoever_is_left_out_stands_still():
    apart, together = make_apart(BOXING, COPIES), make(BOXING, COPIES)
    assert isinstance(apart, Apart)
    apart.reset(3), together.reset(3)
    copies = np.array([1, 4])
    for actions in ACTIONS[:20]:
        apart.send_to(copies, actions[copies])
        the_same(apart.recv(), together.step(actions).part(copies))
    together.reset(3)
    others = np.array([0, 2, 3])
    for actions in ACTIONS[:20]:  # they begin only now
        apart.send_to(others, actions[others])
        the_same(apart.recv(), together.step(actions).part(others))
    the_same(apart.reset(4), together.reset(4))  # all of them once more
    for actions in ACTIONS:
        the_same(apart.step(actions), together.step(actions))
    apart.close()
    together.close()


def test_every_copy_needs_an_action():
    apart = make_apart(BOXING, 2)
    apart.reset(0)
    with pytest.raises(ValueError, match="shape"):
        apart.send(np.zeros(1, np.int64))
    with pytest.raises(ValueError, match=r"0\.\.17"):
        apart.send(np.array([18, 0]))
    apart.close()


def test_other_families_stay_together_and_so_do_very_many(monkeypatch):
    monkeypatch.setattr(environments, "MOST_APART", 3)
    for copies, apart in ((3, True), (4, False)):
        game = make_apart(BOXING, copies)
        assert isinstance(game, Apart) == apart
        game.close()
    assert not isinstance(make_apart(EnvironmentConfig(id="catch"), 2), Apart)
