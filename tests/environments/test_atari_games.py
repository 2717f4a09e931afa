"""The vector emulator against single emulators stepped by hand, and ale-py's traps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from ale_py import Action, ALEInterface, LoggerMode, roms

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.environments.atari import Atari
from lbc.errors import UserError

SIZE = 42


def single_emulator(rom: str) -> ALEInterface:
    ALEInterface.setLoggerMode(LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("random_seed", 0)
    path = roms.get_rom_path(rom)
    assert path is not None
    emulator.loadROM(path)
    emulator.reset_game()
    return emulator


@cache
def area_weights(small: int, large: int) -> np.ndarray:
    """[small, large] share of each large cell in each small cell: exact area averaging."""
    edges = np.arange(small + 1) * large / small
    cells = np.arange(large)
    overlap = np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells)
    return np.maximum(overlap, 0) * small / large


def shrink(screen: np.ndarray) -> np.ndarray:
    """A 210 x 160 screen, averaged to SIZE x SIZE."""
    return area_weights(SIZE, 210) @ screen.astype(float) @ area_weights(SIZE, 160).T


def emulators(**fields: Any) -> EnvironmentConfig:
    defaults: dict[str, Any] = {"id": "ALE/MsPacman-v5", "image_size": SIZE, "max_noops": 0}
    return EnvironmentConfig(**defaults | fields)


@pytest.fixture
def built() -> Iterator[list[Atari]]:
    """Environments to close, so that no test inherits another's threads."""
    environments: list[Atari] = []
    yield environments
    for environment in environments:
        environment.close()


def test_game_overs_rewards_and_frames_equal_an_emulator_stepped_by_hand(built: list[Atari]) -> None:
    built.append(Atari(emulators(), 1))
    environment, by_hand = built[0], single_emulator("ms_pacman")
    assert environment.spec.num_actions == 18 and environment.spec.frames_per_step == 4
    action_set = list(Action.__members__.values())[:18]
    step = environment.reset(0)
    games, largest, restart = 0, 0.0, False
    actions = np.random.default_rng(2).integers(0, 18, 4000)
    for time, action in enumerate(actions):
        step = environment.step(np.array([action]))
        assert step.first[0] == restart
        if restart:
            by_hand.reset_game()
            assert step.reward[0] == 0
            restart = False
            continue
        screens, reward = [], 0
        for _ in range(4):
            if not by_hand.game_over():
                reward += by_hand.act(action_set[action])
                if time % 10 == 0:
                    screens.append(by_hand.getScreenGrayscale())
        assert step.reward[0] == reward
        largest = max(largest, reward)
        restart = by_hand.game_over()
        assert step.terminated[0] == restart and not step.truncated[0]
        if restart:
            games += 1
            if games == 2:
                break
        elif time % 10 == 0:
            expected = shrink(np.maximum(screens[-1], screens[-2]))
            assert np.abs(step.frame[0, 0] - expected).max() <= 1.0
    assert games == 2, "random play loses two games"
    assert largest > 1, "rewards are not clipped"


def test_lost_lives_are_those_of_an_emulator_stepped_by_hand(built: list[Atari]) -> None:
    """The last one is game over; without the switch, which changes nothing else, nobody hears of any."""
    for told in (True, False):
        built.append(Atari(emulators(life_information=told), 1))
    by_hand = single_emulator("ms_pacman")
    action_set = list(Action.__members__.values())[:18]
    for environment in built:
        environment.reset(0)
    before, lost = by_hand.lives(), 0
    for action in np.random.default_rng(2).integers(0, 18, 2000):
        step, silent = (environment.step(np.array([action])) for environment in built)
        for _ in range(4):
            if not by_hand.game_over():
                by_hand.act(action_set[action])
        np.testing.assert_array_equal(silent.frame, step.frame)
        assert silent.reward == step.reward and silent.terminated == step.terminated
        assert not silent.lost[0]
        if by_hand.game_over():
            break
        assert step.lost[0] == (by_hand.lives() < before)
        before, lost = by_hand.lives(), lost + step.lost[0]
    assert lost == 2 and step.terminated[0]
    for environment in built:
        assert environment.step(np.array([0])).first[0] and not environment.step(np.array([0])).lost[0]


def test_time_limit_is_truncation_in_frames(built: list[Atari]) -> None:
    """10 frames hold three actions of 4; the idle frames at the start do not count."""
    built.append(Atari(emulators(max_episode_frames=10, max_noops=30), 2))
    environment = built[0]
    environment.reset(0)
    steps = [environment.step(np.zeros(2, np.int64)) for _ in range(8)]
    assert not any(step.terminated.any() for step in steps)
    np.testing.assert_array_equal([step.truncated.all() for step in steps], [0, 0, 1, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal([step.first.all() for step in steps], [0, 0, 0, 1, 0, 0, 0, 1])


@pytest.mark.parametrize(("max_noops", "copies", "idle"), [(0, 3, {0}), (2, 6, {0, 1, 2})])
def test_an_episode_starts_after_0_to_max_noops_idle_frames(
    max_noops: int, copies: int, idle: set[int], built: list[Atari]
) -> None:
    built.append(Atari(emulators(id="Asterix", max_noops=max_noops), copies))
    by_hand = single_emulator("asterix")
    starts = []
    for _ in range(5):
        starts.append(shrink(by_hand.getScreenGrayscale()))
        by_hand.act(Action.NOOP)
    assert len(np.unique(np.round(starts[:4]), axis=0)) == 4, "the game must look different in each frame"
    frames = built[0].reset(0).frame[:, 0]
    distance = [[np.abs(frame - start).max() for start in starts] for frame in frames]
    assert np.min(distance, axis=1).max() <= 1.0
    assert set(np.argmin(distance, axis=1).tolist()) == idle


def test_switches_reach_the_emulator(built: list[Atari]) -> None:
    """Each switch changes what the same seed and the same actions show."""

    def play(**fields: Any) -> np.ndarray:
        built.append(Atari(emulators(id="Breakout", image_size=32, **fields), 1))
        built[-1].reset(0)
        actions = np.random.default_rng(0).integers(0, 4, (40, 1))
        return np.array([built[-1].step(action).frame for action in actions])

    plain = play()
    np.testing.assert_array_equal(play(), plain)
    assert (play(sticky_actions=0.5) != plain).any()
    assert (play(fire_reset=True) != plain).any()
    assert (play(action_repeat=2) != plain).any()
    play(full_action_space=False)
    assert built[-1].spec.num_actions == 4


def test_plain_and_official_names_are_the_same_game(built: list[Atari]) -> None:
    for name in ("Pong", "ALE/Pong-v5"):
        environment = make(emulators(id=name), 1)
        assert isinstance(environment, Atari)
        built.append(environment)
    one, other = (environment.reset(3).frame for environment in built)
    np.testing.assert_array_equal(one, other)
    assert built[0].spec.observation_shape == (4, SIZE, SIZE)


@pytest.mark.parametrize("id", ["ALE/Pogn-v5", "ALE/Pong", "ALE/pong-v5"])
def test_unknown_game_names_the_nearest(id: str) -> None:
    with pytest.raises(UserError, match=f"'{id}' is not an Atari game. Did you mean 'ALE/Pong-v5'"):
        make(emulators(id=id), 1)


def test_seeds_that_the_emulator_would_misread_are_refused(built: list[Atari]) -> None:
    built.append(Atari(emulators(id="Pong"), 2))
    for seed in (-1, 2**31 - 1):
        with pytest.raises(UserError, match="seed must lie in 0"):
            built[0].reset(seed)
    built[0].reset(2**31 - 2)


def test_send_and_recv_are_the_halves_of_step(built: list[Atari]) -> None:
    built += [Atari(emulators(id="Pong"), 2), Atari(emulators(id="Pong"), 2)]
    halves, whole = built
    for environment in built:
        environment.reset(0)
    for action in range(18):
        actions = np.array([action, 17 - action])
        halves.send(actions)
        np.testing.assert_array_equal(halves.recv().frame, whole.step(actions).frame)


def test_threads_are_those_asked_for_and_end_with_close() -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    before = threads()
    environment = Atari(emulators(id="Pong", threads=1), 2)
    assert threads() == before + 1
    environment.close()
    environment.close()
    assert threads() == before


def test_answers_of_other_ale_versions_are_tidied(
    built: list[Atari], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reward repeated in a restarting row, and an end that is both: neither happens in 0.12, both could."""
    built.append(Atari(emulators(id="Pong"), 1))
    environment = built[0]
    environment.reset(0)
    frame = np.zeros((1, 1, SIZE, SIZE), np.uint8)
    ends = iter([True, False])

    class Scripted:
        def send(self, actions: np.ndarray) -> None:
            pass

        def recv(self) -> tuple:
            both = np.array([next(ends)])
            return frame, np.array([7]), both, both, {}

    monkeypatch.setattr(environment, "_emulators", Scripted())
    end = environment.step(np.array([0]))
    assert end.terminated[0] and not end.truncated[0] and end.reward[0] == 7
    restart = environment.step(np.array([0]))
    assert restart.first[0] and restart.reward[0] == 0
