"""Every family keeps the promises of ``VectorEnvironment``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.interfaces import Game, VectorEnvironment
from lbc.types import EnvironmentStep

FIELDS = tuple(field.name for field in dataclasses.fields(EnvironmentStep))
COPIES = 3
SEED = 11

CARDS = {  # config, steps that see several episode ends
    "catch": (EnvironmentConfig(id="catch"), 40),
    "long catch": (EnvironmentConfig(id="catch", catch_rows=25, catch_actions=18), 80),
    "catch with a clock": (EnvironmentConfig(id="catch", max_episode_steps=8), 40),  # one step too short
    "deepsea": (EnvironmentConfig(id="deepsea", deepsea_depth=5), 40),
    "asterix": (EnvironmentConfig(id="MinAtar/Asterix"), 400),
    "breakout": (EnvironmentConfig(id="MinAtar/Breakout"), 150),
    "freeway": (EnvironmentConfig(id="MinAtar/Freeway"), 2600),
    "seaquest": (EnvironmentConfig(id="MinAtar/Seaquest"), 400),
    "space invaders": (EnvironmentConfig(id="MinAtar/SpaceInvaders", full_action_space=False), 400),
    "minatar with a clock": (EnvironmentConfig(id="MinAtar/Asterix", max_episode_steps=10), 100),
    "cartpole": (EnvironmentConfig(id="CartPole-v1"), 150),
    "frozen lake": (EnvironmentConfig(id="FrozenLake-v1"), 150),
    "user's vector": (EnvironmentConfig(id="sample_games:vector"), 40),
    "user's image": (EnvironmentConfig(id="sample_games:image", max_episode_steps=3), 40),
    "atari": (EnvironmentConfig(id="ALE/MsPacman-v5", max_episode_frames=40, image_size=32), 40),
    "atari with lives": (
        EnvironmentConfig(id="Breakout", max_episode_frames=600, image_size=32, life_information=True),
        155,
    ),
    "sticky atari": (
        EnvironmentConfig(id="Breakout", max_episode_frames=40, sticky_actions=0.25, image_size=32),
        40,
    ),
}


@dataclass(frozen=True)
class Rollout:
    """T + 1 rows of E copies: what ``reset`` and T steps answered."""

    frame: np.ndarray  # [T + 1, E, ...]
    reward: np.ndarray  # [T + 1, E]
    terminated: np.ndarray  # [T + 1, E]
    truncated: np.ndarray  # [T + 1, E]
    first: np.ndarray  # [T + 1, E]
    lost: np.ndarray  # [T + 1, E]

    @property
    def ended(self) -> np.ndarray:
        return self.terminated | self.truncated


def roll(environment: VectorEnvironment, seed: int, actions: np.ndarray) -> Rollout:
    steps = [_copied(environment.reset(seed))]
    steps += [_copied(environment.step(row)) for row in actions]
    return Rollout(**{field: np.stack([getattr(step, field) for step in steps]) for field in FIELDS})


def _copied(step: EnvironmentStep) -> EnvironmentStep:
    """A frame is valid only until the next call."""
    return dataclasses.replace(step, frame=step.frame.copy())


def random_actions(environment: VectorEnvironment, length: int) -> np.ndarray:
    shape = (length, environment.num_envs)
    return np.random.default_rng(0).integers(0, environment.spec.num_actions, shape)


def assert_same(one: Rollout, other: Rollout) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


@pytest.fixture(params=CARDS, scope="module")
def card(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def environment(card: str) -> Iterator[VectorEnvironment]:
    """One per card and for all tests: emulators start slowly, and ``reset`` must forget what was played."""
    environment = make(CARDS[card][0], COPIES)
    yield environment
    environment.close()


def test_protocol(card: str, environment: VectorEnvironment) -> None:
    spec = environment.spec
    actions = random_actions(environment, CARDS[card][1])
    rollout = roll(environment, SEED, actions)

    assert environment.num_envs == COPIES
    assert rollout.frame.shape[1:] == (COPIES, *spec.frame_shape)
    assert rollout.frame.dtype == spec.frame_dtype
    assert rollout.reward.shape == rollout.first.shape == (len(actions) + 1, COPIES)
    assert rollout.reward.dtype == np.float32
    for field in (rollout.terminated, rollout.truncated, rollout.first, rollout.lost):
        assert field.dtype == bool
        assert field.shape == rollout.reward.shape

    assert rollout.first[0].all()
    np.testing.assert_array_equal(rollout.first[1:], rollout.ended[:-1])
    assert not (rollout.terminated & rollout.truncated).any()
    assert not (rollout.first & rollout.ended).any()
    assert not rollout.reward[rollout.first].any()
    assert not (rollout.lost & rollout.first).any()
    assert rollout.lost.any() == (card == "atari with lives")
    assert rollout.ended.sum() >= COPIES, "the rollout is too short to say anything about ends"

    # The same seed and actions give the same steps, whatever was played before ...
    assert_same(roll(environment, SEED, actions), rollout)
    # ... even when the actions that are ignored differ ...
    ignored = rollout.ended[:-1]  # the action chosen in an episode's last row
    changed = np.where(ignored, (actions + 1) % spec.num_actions, actions)
    assert (changed != actions).any()
    assert_same(roll(environment, SEED, changed), rollout)
    # ... and NumPy's integers are seeds too.
    assert_same(roll(environment, np.int64(SEED), actions), rollout)  # type: ignore[arg-type]


def test_copy_e_is_seeded_with_seed_plus_e(card: str, environment: VectorEnvironment) -> None:
    length = min(CARDS[card][1], 150)
    together = roll(environment, SEED, random_actions(environment, length))
    alone = make(CARDS[card][0], 1)
    last = COPIES - 1
    separate = roll(alone, SEED + last, random_actions(environment, length)[:, last:])
    alone.close()
    np.testing.assert_array_equal(separate.frame[:, 0], together.frame[:, last])
    np.testing.assert_array_equal(separate.reward[:, 0], together.reward[:, last])


def test_reset_forgets_an_episode_that_has_just_ended(card: str, environment: VectorEnvironment) -> None:
    environment.reset(SEED)
    actions = random_actions(environment, CARDS[card][1])
    ends = (step.terminated | step.truncated for step in map(environment.step, actions))
    assert any(end.any() for end in ends)
    environment.reset(SEED)
    assert not environment.step(actions[0]).first.any()


def test_copies_differ_under_the_same_actions(card: str, environment: VectorEnvironment) -> None:
    if card == "deepsea":
        pytest.skip("the sea has no chance in it")
    shared = random_actions(environment, 60)[:, :1]
    rollout = roll(environment, SEED, shared.repeat(COPIES, axis=1))
    assert (rollout.frame[:, 1:] != rollout.frame[:, :1]).any()


@pytest.mark.parametrize("id", ["catch", "MinAtar/Breakout", "CartPole-v1", "ALE/Pong-v5"])
def test_wrong_actions_are_refused_before_they_reach_the_game(id: str) -> None:
    environment = make(EnvironmentConfig(id=id), 2)
    environment.reset(SEED)
    too_high = environment.spec.num_actions
    for wrong in ([0], [0, too_high], [-1, 0], [0.0, 1.0]):
        with pytest.raises(ValueError, match="actions must"):
            environment.step(np.array(wrong))
    environment.step(np.array([0, too_high - 1]))
    environment.close()


def test_begin_anew_concerns_its_copies_alone(card: str, environment: Game) -> None:
    actions = random_actions(environment, CARDS[card][1])
    undisturbed = roll(environment, SEED, actions)
    when = int(np.flatnonzero(undisturbed.ended[:, 1])[0])  # worst of all moments: its episode has just ended
    environment.reset(SEED)
    for row in actions[:when]:
        seen = _copied(environment.step(row))
    frame = environment.begin_anew(np.arange(COPIES) == 1).copy()

    np.testing.assert_array_equal(frame[[0, 2]], seen.frame[[0, 2]])
    later = [_copied(environment.step(row)) for row in actions[when:]]
    for field in FIELDS:
        rows = np.stack([getattr(step, field) for step in later])
        np.testing.assert_array_equal(rows[:, [0, 2]], getattr(undisturbed, field)[when + 1 :, [0, 2]], field)
    assert not later[0].first[1], "it has begun already"
    ends = np.array([step.terminated[1] or step.truncated[1] for step in later])
    firsts = np.array([step.first[1] for step in later])
    np.testing.assert_array_equal(firsts[1:], ends[:-1])
    if card in ("atari", "sticky atari", "minatar with a clock"):
        assert np.flatnonzero(ends)[0] == 9, "the clock begins anew, too"
    if card in ("catch", "deepsea"):
        assert frame[1, 0, 0].any(), "the ball is in the top row, the diver at the surface"
