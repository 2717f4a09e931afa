"""Sample Factory's asynchronous APPO on one Atari game: one policy, Nature convolutions, LSTM.

    .venvs/sample-factory/bin/python benchmarks/peer_sample_factory.py --env ALE/Pong-v5 --out /tmp/appo

Prints ``frames N`` behind every update: the frames that the learner has consumed.  Goes on until it is
stopped.  The games are those of Sample Factory's own Atari example; sampling and optimization are its
defaults (rollouts of 32 steps, batches of 1,024, every sample used once).

Facts about version 2.1.1 that this file is built around:

- it needs gymnasium below 1.0, where ale-py 0.12 registers no game, so this file does;
- workers are spawned: they import this file again and must find the game on their own;
- it sets the niceness of its processes to fixed numbers, which would undo ``nice`` for a whole benchmark;
- its learner uses one torch thread, whatever the machine has.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
from sample_factory.algo.utils.misc import LEARNER_ENV_STEPS
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner
from sf_examples.atari.atari_utils import ATARI_ENVS, make_atari_env

SUFFIX = "NoFrameskip-v4"  # under such ids the example looks for its games
SETTINGS = {
    "device": "cpu",
    "async_rl": True,
    "num_policies": 1,
    "num_workers": 2,
    "num_envs_per_worker": 16,
    "num_epochs": 1,
    "encoder_conv_architecture": "convnet_atari",
    "nonlinearity": "relu",
    "use_rnn": True,
    "rnn_type": "lstm",
    "rnn_size": 256,
    "obs_scale": 255.0,
    "env_frameskip": 4,
    "env_framestack": 4,
    "summaries_use_frameskip": True,  # steps are counted in frames
}


def name_of(env: str) -> str:
    """Sample Factory's name of the game."""
    id = env.removeprefix("ALE/").removesuffix("-v5") + SUFFIX
    for spec in ATARI_ENVS:
        if spec.env_id == id:
            return spec.name
    raise SystemExit(f"Sample Factory has no game '{env}'")


def make_game(name: str, *rest: Any, **options: Any) -> gymnasium.Env:
    """Sample Factory's example game, in whichever process asks for it."""
    id = next(spec.env_id for spec in ATARI_ENVS if spec.name == name)
    if id not in gymnasium.registry:
        title = id.removesuffix(SUFFIX)
        rom = next(rom for rom in ale_py.roms.get_all_rom_ids() if rom.title().replace("_", "") == title)
        gymnasium.register(
            id,
            entry_point="ale_py.env:AtariEnv",
            kwargs={"game": rom, "frameskip": 1, "repeat_action_probability": 0.0},
        )
    return make_atari_env(name, *rest, **options)


def print_frames(runner: Any, message: dict[str, Any], policy: int) -> None:
    print(f"frames {message[LEARNER_ENV_STEPS]}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Asynchronous APPO on Atari, until stopped.")
    parser.add_argument("--env", default="ALE/Pong-v5")
    parser.add_argument("--out", type=Path, required=True, help="folder for what Sample Factory writes")
    options = parser.parse_args(arguments)
    name = name_of(options.env)
    register_env(name, make_game)
    settings = {**SETTINGS, "env": name, "train_dir": options.out, "experiment": "appo"}
    settings["default_niceness"] = os.nice(0)
    words = [f"--{key}={value}" for key, value in settings.items()]
    _, runner = make_runner(parse_full_cfg(parse_sf_args(words)[0], words))
    runner.policy_msg_handlers[LEARNER_ENV_STEPS].append(print_frames)  # the method for it replaces the list
    return runner.init() or runner.run()


if __name__ == "__main__":
    sys.exit(main())
