"""Stable-Baselines3's PPO, or sb3-contrib's RecurrentPPO, on one Atari game with the usual settings.

    .venvs/sb3/bin/python benchmarks/peer_sb3.py ppo --env ALE/Pong-v5
    .venvs/sb3/bin/python benchmarks/peer_sb3.py recurrent --env ALE/Pong-v5

Prints ``frames N`` behind every update: the frames that were played and learned from.  Goes on until it
is stopped; only its speed matters, so the learning rate does not fall.  Games run in processes of their
own, torch uses its default number of threads.  The recurrent policy has a single LSTM for actor and
critic, as its peers have; by default it would have two.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ppo_settings import ATARI, NUM_ENVS
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack

FRAME_SKIP = 4
SETTINGS: dict[str, Any] = {**ATARI, "device": "cpu"}
ONE_LSTM = {"lstm_hidden_size": 256, "shared_lstm": True, "enable_critic_lstm": False}


class Frames(BaseCallback):
    """A rollout begins when the update before it is over."""

    def _on_rollout_start(self) -> None:
        print(f"frames {FRAME_SKIP * self.num_timesteps}", flush=True)

    def _on_step(self) -> bool:
        return True


def games(env: str) -> VecEnv:
    """84x84, grayscale, four frames to a step and four steps to an observation, rewards clipped."""
    emulators = make_atari_env(
        f"ale_py:{env}",  # the subprocesses import ale_py, which registers the games
        NUM_ENVS,
        seed=1,
        env_kwargs={"frameskip": 1, "repeat_action_probability": 0.0},
        wrapper_kwargs={"frame_skip": FRAME_SKIP},
        vec_env_cls=SubprocVecEnv,
    )
    return VecFrameStack(emulators, 4)


def build(algorithm: str, env: str) -> BaseAlgorithm:
    if algorithm == "ppo":
        return PPO("CnnPolicy", games(env), **SETTINGS)
    from sb3_contrib import RecurrentPPO

    return RecurrentPPO("CnnLstmPolicy", games(env), policy_kwargs=ONE_LSTM, **SETTINGS)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="PPO or RecurrentPPO on Atari, until stopped.")
    parser.add_argument("algorithm", choices=["ppo", "recurrent"])
    parser.add_argument("--env", default="ALE/Pong-v5")
    options = parser.parse_args(arguments)
    build(options.algorithm, options.env).learn(total_timesteps=sys.maxsize, callback=Frames())


if __name__ == "__main__":
    main()
