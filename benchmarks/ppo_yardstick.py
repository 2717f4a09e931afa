"""The yardstick: Stable-Baselines3's PPO on exactly the tasks that LBC is measured on.

    python benchmarks/ppo_yardstick.py minatar --env MinAtar/Breakout --frames 1000000 --seed 3 --out DIR
    python benchmarks/ppo_yardstick.py short-pong --frames 20000000 --seed 3 --out DIR
    python benchmarks/ppo_yardstick.py atari-laptop --env ALE/Assault-v5 --frames 4000000 --seed 1 --out DIR

Needs ``stable-baselines3==2.9.2`` beside the packages of ``lbc.environments``; of ``lbc`` itself only
the environments are used, none of the learning code.  ``DIR/metrics.jsonl`` holds one object per
report and ``DIR/config.json`` every setting.  Frames are emulator frames of real transitions.

Same task
    The games come from ``lbc.environments.make``, through one ``VecEnv`` adapter; the torso (`TORSOS`)
    has the layers of LBC's torso for that task, with Stable-Baselines3's orthogonal initialisation
    (gain sqrt 2; 0.01 for the policy's head, 1 for the value's).

Two autoreset conventions, one set of transitions
    LBC's environments restart a finished copy at the *next* step, whatever its action; Stable-Baselines3
    expects a finished copy to be restarted in the *same* step.  A copy cannot be restarted early without
    stepping all others, so the adapter reports the end where it happens and shows the final observation
    o_T as the next observation.  Stable-Baselines3 then stores rows

        row T-1: o_{T-1}, a_{T-1}, r_T, "done"
        row T:   o_T, ignored action, 0
        row T+1: the first of the next episode

    Row T-1 is exact: the "done" cuts the advantage estimation between T-1 and T, so the row sees neither
    V(o_T) nor anything later, unless the end was a time limit; then Stable-Baselines3 itself adds
    gamma V(o_T) to its reward (``terminal_observation`` is o_T).  Row T is not a transition.  It
    influences no other row, because row T-1 is cut off from it, so leaving it out of the minibatches
    (`RealRowsBuffer`) leaves the very rows of a same-step environment.  Such rows count as no frames.

Settings
    ``short-pong`` and ``atari-laptop``: the usual Atari settings of PPO, untuned, on the cards' frames of
    42 x 42 and without life information, as in LBC's protocol.  ``atari-laptop`` learns from the sign of
    each reward, as usual there; scores are raw.  ``minatar``: the usual settings for small games, with the
    learning rate chosen on Breakout: 200,000 frames, seeds 1 and 2, score_mean averaged over the last tenth
    of the run.

        learning rate   5e-4   1e-3   2.5e-3   5e-3   1e-2
        seed 1          4.13   4.79   5.48     9.94   9.76
        seed 2          4.43   5.09   8.45    11.06  10.31

    5e-3 and 1e-2 are not told apart by two seeds.  Nothing else was tuned, and no longer run was used.
    Measure with other seeds than these two: the choice was made on them.  The learning rate falls
    linearly to 0 over the frames.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from ppo_settings import ATARI, NUM_ENVS
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.interfaces import VectorEnvironment

# Convolutions as (filters, kernel, stride), then one fully connected layer; ReLU behind each.
TORSOS: dict[str, tuple[tuple[tuple[int, int, int], ...], int]] = {
    "minatar": (((16, 3, 1),), 128),
    "short-pong": (((16, 6, 3), (32, 4, 2), (32, 3, 1)), 256),
    "atari-laptop": (((16, 6, 3), (32, 4, 2), (32, 3, 1)), 256),
}

TASKS: dict[str, dict[str, Any]] = {
    "minatar": {
        "env": "MinAtar/Breakout",
        "environment": {"minatar_sticky": 0.1, "minatar_ramping": True, "full_action_space": True},
        "score_window": 32,
        "num_envs": 16,
        "ppo": {
            "n_steps": 128,
            "n_epochs": 4,
            "batch_size": 256,
            "learning_rate": 5e-3,  # chosen in a sweep: see the module's text
            "clip_range": 0.2,
            "ent_coef": 0.01,
            "vf_coef": 0.5,
            "max_grad_norm": 0.5,
            "gamma": 0.99,
            "gae_lambda": 0.95,
        },
    },
    "short-pong": {
        "env": "ALE/Pong-v5",
        "environment": {
            "image_size": 42,
            "frame_stack": 4,
            "full_action_space": False,
            "action_repeat": 4,
            "sticky_actions": 0.0,
            "max_noops": 30,
        },
        "score_window": 100,
        "num_envs": NUM_ENVS,
        "ppo": ATARI,
    },
}
TASKS["atari-laptop"] = {**TASKS["short-pong"], "clip_rewards": True}

REPORTS = 100  # lines in metrics.jsonl over a run


class YardstickVecEnv(VecEnv):
    """A `VectorEnvironment` as Stable-Baselines3 sees it; stacks frames and counts what was played.

    An end is reported in the step in which it happens, with o_T both as the next observation and as
    ``terminal_observation``; in the step after it the action is ignored and `ignored` is set (see the
    module's text).  Before the first frame of an episode that frame repeats, as in LBC's own stacks.
    """

    def __init__(
        self, environment: VectorEnvironment, seed: int, score_window: int, clip_rewards: bool = False
    ) -> None:
        spec = environment.spec
        low, high = (0, 255) if spec.frame_dtype == np.uint8 else (-np.inf, np.inf)
        self.environment = environment
        self.frames = 0  # emulator frames of real transitions
        self.episodes = 0
        self.scores: deque[float] = deque(maxlen=score_window)  # raw returns of the newest episodes
        self.ignored = np.zeros(environment.num_envs, dtype=bool)  # actions that the newest step ignored
        self._first_seed = seed
        self._clip_rewards = clip_rewards  # what PPO learns from; `scores` are raw
        self._returns = np.zeros(environment.num_envs, dtype=np.float64)
        self._stack = np.zeros((environment.num_envs, *spec.observation_shape), dtype=spec.frame_dtype)
        self._actions = np.zeros(environment.num_envs, dtype=np.int64)
        super().__init__(
            environment.num_envs,
            gymnasium.spaces.Box(low, high, spec.observation_shape, dtype=spec.frame_dtype),
            gymnasium.spaces.Discrete(spec.num_actions),
        )

    def _observe(self, frame: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Push the newest frames; a copy, since Stable-Baselines3 keeps observations for a step."""
        stack, channels = self.environment.spec.frame_stack, frame.shape[1]
        self._stack = np.concatenate([self._stack[:, channels:], frame], axis=1)
        self._stack[first] = np.concatenate([frame[first]] * stack, axis=1)
        return self._stack.copy()

    def reset(self) -> np.ndarray:
        step = self.environment.reset(self._first_seed)
        self._returns[:] = 0.0
        self.ignored[:] = False
        return self._observe(step.frame, step.first)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = np.asarray(actions, dtype=np.int64)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        step = self.environment.step(self._actions)
        self.ignored = step.first.copy()
        observation = self._observe(step.frame, step.first)
        rewards = np.array(step.reward, dtype=np.float32)  # Stable-Baselines3 adds bootstraps in place
        dones = step.terminated | step.truncated
        self.frames += self.environment.spec.frames_per_step * int((~step.first).sum())
        self._returns += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for e in np.flatnonzero(dones):
            infos[e]["terminal_observation"] = observation[e]
            infos[e]["TimeLimit.truncated"] = bool(step.truncated[e])
            self.scores.append(float(self._returns[e]))
            self.episodes += 1
            self._returns[e] = 0.0
        return observation, np.sign(rewards) if self._clip_rewards else rewards, dones, infos

    def close(self) -> None:
        self.environment.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(f"copies of '{self.environment.spec.id}' have no attribute '{attr_name}'")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("copies of a vector environment have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("copies of a vector environment have no methods of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class RealRowsBuffer(RolloutBuffer):
    """A rollout whose minibatches leave out the rows with an ignored action (see the module's text).

    What remains is cut into minibatches of nearly even size, because the advantages of each are
    normalised and a leftover of a few rows would be all noise.
    """

    def __init__(self, *args: Any, environment: YardstickVecEnv, **kwargs: Any) -> None:
        self.environment = environment
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        self.real = np.zeros((self.buffer_size, self.n_envs), dtype=bool)
        super().reset()

    def add(self, *args: Any, **kwargs: Any) -> None:
        self.real[self.pos] = ~self.environment.ignored  # a row is added right behind its step
        super().add(*args, **kwargs)

    def get(self, batch_size: int | None = None) -> Iterator[Any]:
        assert self.full, "the rollout is not complete"
        if not self.generator_ready:
            for name in ("observations", "actions", "values", "log_probs", "advantages", "returns"):
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self.generator_ready = True
        rows = np.random.permutation(np.flatnonzero(self.swap_and_flatten(self.real)))
        batches = 1 if batch_size is None else max(1, round(len(rows) / batch_size))
        for batch in np.array_split(rows, batches):
            yield self._get_samples(batch)


class Torso(BaseFeaturesExtractor):
    """The layers of `TORSOS`; bytes arrive here already scaled to [0, 1] by Stable-Baselines3."""

    def __init__(self, observation_space: gymnasium.spaces.Box, task: str) -> None:
        convolutions, units = TORSOS[task]
        super().__init__(observation_space, units)
        layers: list[torch.nn.Module] = []
        channels, *size = observation_space.shape
        for filters, kernel, stride in convolutions:
            layers += [torch.nn.Conv2d(channels, filters, kernel, stride), torch.nn.ReLU()]
            channels = filters
            size = [(side - kernel) // stride + 1 for side in size]
        flat = channels * int(np.prod(size))
        layers += [torch.nn.Flatten(), torch.nn.Linear(flat, units), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layers(observations)


class Reports(BaseCallback):
    """Writes a line about every 1% of the frames, and ends the run behind the last one."""

    def __init__(self, environment: YardstickVecEnv, frames: int, out: Path) -> None:
        super().__init__()
        self.environment = environment
        self.total = frames
        self.file = (out / "metrics.jsonl").open("w", encoding="utf-8")
        self.began = time.perf_counter()
        self.last_frames = 0

    def report(self) -> None:
        environment, now = self.environment, time.perf_counter()
        frames = environment.frames
        line = {
            "frames": frames,
            "seconds": round(now - self.began, 3),
            "episodes": environment.episodes,
            "score_mean": float(np.mean(environment.scores)) if environment.scores else None,
            "frames_per_second": round(frames / max(now - self.began, 1e-9), 1),  # updates included
        }
        self.last_frames = frames
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
        score = "-" if line["score_mean"] is None else f"{line['score_mean']:.2f}"
        print(
            f"{frames:>11,} frames  {line['seconds']:>8.1f} s  {line['episodes']:>7,} episodes  "
            f"score {score:>7}  {line['frames_per_second']:>9,.0f} frames/s",
            flush=True,
        )

    def _on_step(self) -> bool:
        going_on = self.environment.frames < self.total
        if not going_on or self.environment.frames - self.last_frames >= self.total / REPORTS:
            self.report()
        return going_on


def build(
    task: str, environment: YardstickVecEnv, frames: int, seed: int, device: str, ppo: dict[str, Any]
) -> PPO:
    """PPO with the settings ``ppo``; the learning rate falls to 0 over the real frames."""
    rate = ppo["learning_rate"]
    return PPO(
        "MlpPolicy",  # the plain actor-critic policy; its features come from the torso
        environment,
        **{
            **ppo,
            "learning_rate": lambda _: rate * max(0.0, 1.0 - environment.frames / frames),
            "rollout_buffer_class": RealRowsBuffer,
            "rollout_buffer_kwargs": {"environment": environment},
            "policy_kwargs": {
                "features_extractor_class": Torso,
                "features_extractor_kwargs": {"task": task},
                "net_arch": [],
            },
            "seed": seed,
            "device": device,
        },
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Stable-Baselines3's PPO on the benchmark tasks.")
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("--env", help="id of the game; by default the task's first")
    parser.add_argument("--frames", type=int, required=True, help="emulator frames")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="folder for metrics.jsonl and config.json")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--learning-rate", type=float, help="instead of the task's")
    options = parser.parse_args(arguments)

    torch.set_num_threads(options.threads)
    task = TASKS[options.task]
    ppo = dict(task["ppo"])
    if options.learning_rate is not None:
        ppo["learning_rate"] = options.learning_rate
    id = options.env or task["env"]
    environment = YardstickVecEnv(
        make(EnvironmentConfig(id=id, **task["environment"]), task["num_envs"]),
        options.seed,
        task["score_window"],
        task.get("clip_rewards", False),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    settings = {**task, "env": id, "ppo": ppo, "torso": TORSOS[options.task], "task": options.task}
    settings |= {key: getattr(options, key) for key in ("frames", "seed", "threads", "device")}
    (options.out / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    model = build(options.task, environment, options.frames, options.seed, options.device, ppo)
    reports = Reports(environment, options.frames, options.out)
    try:
        model.learn(total_timesteps=sys.maxsize, callback=reports)  # `reports` ends it
    finally:
        reports.file.close()
        environment.close()


if __name__ == "__main__":
    main()
