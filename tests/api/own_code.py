"""A user's own game, torsos and reward shapings; some of them do not fit."""

from __future__ import annotations

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

number = 5


class Lights(gymnasium.Env):
    """A byte image with one light; pressing its column's half brings 2."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 6, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._show(), {}

    def step(self, action):
        self.steps += 1
        reward = 2.0 if action == self.column // 3 else 0.0
        return self._show(), reward, self.steps == 5, False, {}

    def _show(self):
        image = np.zeros((8, 6, 1), np.uint8)
        self.column = int(self.np_random.integers(6))
        image[self.np_random.integers(8), self.column] = 255
        return image


def torso(shape, model):
    assert shape == (4, 8, 6) and model.lstm_units == 8
    return nn.Sequential(nn.Conv2d(4, 3, 3), nn.ReLU(), nn.Flatten(), nn.LayerNorm(72))


def with_batch_norm(shape, model):
    return nn.Sequential(nn.Flatten(), nn.Linear(5, 4), nn.BatchNorm1d(4))


def with_idle_weight(shape, model):
    module = nn.Linear(5, 4)
    module.idle = nn.Parameter(torch.zeros(3))
    return module


def unflattened(shape, model):
    return nn.Identity()


def wrong_size(shape, model):
    return nn.Linear(7, 4)


def no_module(shape, model):
    return "a torso"


def failing(shape, model):
    raise ValueError("no such layer")


class Hesitant(nn.Module):
    """Decides in Python, by the batch's size, which a trace cannot know."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x.flatten(1))
        return y if len(y) == 2 else -y


def halved(reward: Tensor) -> Tensor:
    return 0.5 * reward


def summed(reward: Tensor) -> Tensor:
    return reward + reward.sum()


def scalar_only(reward: Tensor) -> Tensor:
    return reward if reward > 0 else 2.0 * reward


def infinite(reward: Tensor) -> Tensor:
    return 1.0 / reward


def doubled(reward: Tensor) -> Tensor:
    return reward.double()
