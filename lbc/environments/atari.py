"""Atari 2600 games through ale-py's own vector environment: emulators in C++ threads.

Facts about ale-py 0.12 that this file is built around:

- a seed must be a Python int in 0..2^31-1; a negative one silently means "unseeded";
- an action outside the action set blocks for ever, so actions are checked before they are sent;
- ``noop_max = n`` idles 0..n-1 frames, so it is given one more;
- the time limit counts frames after the idle start, and the last action is played out;
- a frame of a finished game is that of the step before (nobody learns a value from it);
- emulators can neither be saved nor restored: a resumed run starts new episodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from lbc.config import EnvironmentConfig
from lbc.environments.cores import usable_cores
from lbc.environments.episodes import checked_actions, opening_step
from lbc.errors import UserError, nearest
from lbc.types import EnvironmentSpec, EnvironmentStep

PREFIX = "ALE/"
_SUFFIX = "-v5"

_TWO_PLAYERS = {"combat", "joust", "maze_craze", "warlords"}  # ROMs without a game for one


def games() -> dict[str, str]:
    """Names as in ``ALE/<Name>-v5`` to ROM names."""
    single = sorted(set(roms.get_all_rom_ids()) - _TWO_PLAYERS)
    return {rom.title().replace("_", ""): rom for rom in single}


def ids() -> list[str]:
    """The official spelling; ``make`` takes the plain name too."""
    return [f"{PREFIX}{name}{_SUFFIX}" for name in games()]


def emulators(
    config: EnvironmentConfig, num_envs: int, threads: int, height: int, width: int, grey: bool = True
) -> Any:
    """ale-py's, as every run has them; only what they show may differ."""
    return AtariVectorEnv(
        _rom(config.id),
        num_envs,
        num_threads=threads,
        max_num_frames_per_episode=config.max_episode_frames,
        repeat_action_probability=config.sticky_actions,
        full_action_space=config.full_action_space,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        img_height=height,
        img_width=width,
        grayscale=grey,
        stack_num=1,
        frameskip=config.action_repeat,
        noop_max=config.max_noops + 1,
        episodic_life=False,
        reward_clipping=False,
        use_fire_reset=config.fire_reset,
    )


class Atari:
    """Copies of one game; ``send`` and ``recv`` are the two halves of ``step``, for whoever has work between.

    Frames are grayscale, the maximum of the last two emulator frames of an action, one per step.
    """

    resumable = False  # the vector interface cannot save an emulator's state

    def __init__(self, config: EnvironmentConfig, num_envs: int) -> None:
        threads, size = min(config.threads or usable_cores(), num_envs), config.image_size
        self._emulators = emulators(config, num_envs, threads, size, size)
        self.num_envs = num_envs
        self.action_names = [action.name.lower() for action in self._emulators.ale.get_action_set()]
        self.spec = EnvironmentSpec(
            id=config.id,
            frame_shape=(1, config.image_size, config.image_size),
            frame_dtype=np.uint8,
            num_actions=len(self.action_names),
            frame_stack=config.frame_stack,
            frames_per_step=config.action_repeat,
        )
        self._restarting = np.zeros(num_envs, bool)  # [E] copies whose episode ended at the last step
        self._life_information = config.life_information
        self._lives = np.zeros(num_envs, np.int64)  # [E] after the last step

    def reset(self, seed: int) -> EnvironmentStep:
        highest = 2**31 - self.num_envs
        if not 0 <= seed <= highest:
            raise UserError(f"seed must lie in 0..{highest} for {self.num_envs} Atari games, it is {seed}")
        frame, info = self._emulators.reset(seed=int(seed))
        self._restarting = np.zeros(self.num_envs, bool)
        self._lives = self._left(info)
        return opening_step(frame)

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        """Start a step in the emulators' threads; one ``recv`` must follow before anything else."""
        self._emulators.send(checked_actions(actions, self.num_envs, self.spec.num_actions))

    def recv(self) -> EnvironmentStep:
        """Wait for the step that ``send`` started."""
        frame, reward, terminated, truncated, info = self._emulators.recv()
        first = self._restarting
        reward = np.where(first, 0, reward).astype(np.float32)  # some versions repeat the last reward here
        truncated = truncated & ~terminated
        self._restarting = terminated | truncated
        before, self._lives = self._lives, self._left(info)
        lost = (self._lives < before) & ~first
        return EnvironmentStep(frame, reward, terminated, truncated, first, lost)

    def _left(self, info: dict[str, Any]) -> np.ndarray:
        """[E] lives; always none where they do not count."""
        return np.array(info["lives"]) if self._life_information else np.zeros(self.num_envs, np.int64)

    def begin_anew(self, which: np.ndarray) -> np.ndarray:
        frame, info = self._emulators.reset(options={"reset_mask": which})
        self._restarting = self._restarting & ~which
        self._lives = np.where(which, self._left(info), self._lives)
        return np.asarray(frame)

    def close(self) -> None:
        self._emulators = None  # ale-py's own close leaves the threads running


def _rom(game_id: str) -> str:
    """``ALE/MsPacman-v5`` or ``MsPacman`` to ``ms_pacman``."""
    known = games()
    name = game_id.removeprefix(PREFIX).removesuffix(_SUFFIX)
    if name not in known or game_id not in (name, f"{PREFIX}{name}{_SUFFIX}"):
        raise UserError(f"'{game_id}' is not an Atari game.{nearest(game_id, [*known, *ids()])}")
    return known[name]
