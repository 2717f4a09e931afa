"""The usual settings of PPO for Atari, in the words of Stable-Baselines3; untuned."""

from __future__ import annotations

from typing import Any

NUM_ENVS = 8
ATARI: dict[str, Any] = {
    "n_steps": 128,
    "n_epochs": 4,
    "batch_size": 256,
    "learning_rate": 2.5e-4,
    "clip_range": 0.1,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "gamma": 0.99,
    "gae_lambda": 0.95,
}
