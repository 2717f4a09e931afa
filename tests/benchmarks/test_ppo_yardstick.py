"""The yardstick's adapter: PPO sees the transitions of a same-step environment, no more and no less."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import ppo_yardstick

from lbc.cards import resolve
from lbc.config import EnvironmentConfig
from lbc.models.torso import CONVOLUTIONS
from lbc.types import EnvironmentSpec, EnvironmentStep

LENGTHS = (3, 1, 4, 2)  # steps of the episodes of a copy, in turn


class Scripted:
    """Two copies with episodes of known lengths; every other end is a time limit; logs its rows."""

    def __init__(self, frame_stack: int = 1, frames_per_step: int = 3) -> None:
        self.num_envs = 2
        self.spec = EnvironmentSpec(
            "Scripted", (1, 10, 10), np.uint8, 4, frame_stack=frame_stack, frames_per_step=frames_per_step
        )
        self.random = np.random.default_rng(0)
        self.log: list[EnvironmentStep] = []
        self.left = [0, 0]
        self.number = [0, 1]  # the copies are out of phase

    def _row(self, reward, terminated, truncated, first) -> EnvironmentStep:
        frame = self.random.integers(1, 256, (2, 1, 10, 10), dtype=np.uint8)
        row = EnvironmentStep(
            frame,
            *(np.array(x) for x in (np.asarray(reward, np.float32), terminated, truncated, first)),
            np.zeros(2, bool),
        )
        self.log.append(row)
        return row

    def _begin(self, e: int) -> None:
        self.left[e] = LENGTHS[self.number[e] % len(LENGTHS)]

    def reset(self, seed: int) -> EnvironmentStep:
        for e in range(2):
            self._begin(e)
        return self._row([0, 0], [False] * 2, [False] * 2, [True] * 2)

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        reward, terminated, truncated, first = [0.0] * 2, [False] * 2, [False] * 2, [False] * 2
        for e in range(2):
            if self.left[e] == 0:
                first[e] = True
                self.number[e] += 1
                self._begin(e)
                continue
            self.left[e] -= 1
            reward[e] = float(self.random.normal())
            if self.left[e] == 0:
                (truncated if self.number[e] % 2 else terminated)[e] = True
        return self._row(reward, terminated, truncated, first)

    def close(self) -> None: ...


def collected(steps: int):
    """A rollout of PPO on the scripted game, and the rows that the game handed out."""
    torch.set_num_threads(1)
    game = Scripted()
    environment = ppo_yardstick.YardstickVecEnv(game, seed=1, score_window=1000)
    ppo = {**ppo_yardstick.TASKS["minatar"]["ppo"], "n_steps": steps, "batch_size": steps}
    model = ppo_yardstick.build("minatar", environment, 10**6, 1, "cpu", ppo)
    _, callback = model._setup_learn(10**6, None)
    assert model.collect_rollouts(model.env, callback, model.rollout_buffer, steps)
    return model, environment, game.log


@pytest.mark.parametrize("steps", [20, 21, 22, 23])  # the rollout ends in various places of an episode
def test_advantages_of_real_rows_are_those_of_separate_episodes(steps):
    model, _, log = collected(steps)
    buffer, gamma, decay = model.rollout_buffer, 0.99, 0.99 * 0.95
    with torch.no_grad():
        value = np.stack([model.policy.predict_values(torch.tensor(row.frame)).numpy()[:, 0] for row in log])
    truncations = 0
    for e in range(2):
        for t in range(steps):
            real = not log[t + 1].first[e]
            assert buffer.real[t, e] == real
            if not real:
                continue
            advantage, weight = 0.0, 1.0
            for k in range(t, steps):  # until the episode or the rollout ends
                after = log[k + 1]
                beyond = 0.0 if after.terminated[e] else value[k + 1, e]
                advantage += weight * (after.reward[e] + gamma * beyond - value[k, e])
                weight *= decay
                truncations += int(after.truncated[e])
                if after.terminated[e] or after.truncated[e]:
                    break
            assert buffer.advantages[t, e] == pytest.approx(advantage, abs=1e-5)
    assert truncations > 0


def test_minibatches_hold_every_real_row_once_and_nothing_else():
    model, _, log = collected(23)
    real = model.rollout_buffer.real.copy()
    frames = [row.frame for row in log]
    expected = sorted(frames[t][e].tobytes() for t, e in np.argwhere(real))
    batches = list(model.rollout_buffer.get(8))
    seen = sorted(o.numpy().tobytes() for batch in batches for o in batch.observations)
    assert seen == expected
    sizes = [len(batch.advantages) for batch in batches]
    assert max(sizes) - min(sizes) <= 1


def test_scores_and_frames_leave_out_restarts():
    _, environment, log = collected(40)
    ends = sum(int(row.terminated.sum() + row.truncated.sum()) for row in log)
    restarts = sum(int(row.first.sum()) for row in log[1:])
    assert environment.episodes == len(environment.scores) == ends
    assert environment.frames == 3 * (2 * 40 - restarts)
    e, score, scores = 0, 0.0, []
    for row in log:
        score = float(row.reward[e]) + (0.0 if row.first[e] else score)
        if row.terminated[e] or row.truncated[e]:
            scores.append(score)
    assert set(np.round(scores, 5)) <= set(np.round(list(environment.scores), 5))


def test_rewards_may_be_clipped_and_scores_stay_raw():
    raw, clipped = (
        ppo_yardstick.YardstickVecEnv(Scripted(), seed=1, score_window=100, clip_rewards=clip)
        for clip in (False, True)
    )
    raw.reset(), clipped.reset()
    for _ in range(30):
        large, small = (x.step(np.zeros(2, dtype=np.int64))[1] for x in (raw, clipped))
        np.testing.assert_array_equal(small, np.sign(large))
    assert len(raw.scores) > 0
    assert clipped.scores == raw.scores


def test_a_stack_holds_frames_of_its_own_episode_only():
    game = Scripted(frame_stack=3)
    environment = ppo_yardstick.YardstickVecEnv(game, seed=1, score_window=1)
    observations = [environment.reset()]
    for _ in range(30):
        observations.append(environment.step(np.zeros(2, dtype=np.int64))[0])
    for e in range(2):
        for t, observation in enumerate(observations):
            begin = max(s for s in range(t + 1) if game.log[s].first[e])
            for age in range(3):
                expected = game.log[max(t - age, begin)].frame[e, 0]  # the first frame repeats
                np.testing.assert_array_equal(observation[e, 2 - age], expected)


@pytest.mark.parametrize("name", sorted(ppo_yardstick.TASKS))
def test_the_task_is_the_one_of_the_card(name):
    config = resolve(name)
    task = ppo_yardstick.TASKS[name]
    assert EnvironmentConfig(id=task["env"], **task["environment"]) == config.environment
    convolutions, units = ppo_yardstick.TORSOS[name]
    assert (convolutions, units) == (CONVOLUTIONS[config.model.torso], config.model.torso_units)
