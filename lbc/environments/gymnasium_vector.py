"""Any Gymnasium environment with discrete actions: by its id, or from a user's own factory."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from lbc.config import EnvironmentConfig
from lbc.config.own_parts import imported, is_own
from lbc.environments.episodes import InTwoHalves, checked_actions, opening_step
from lbc.errors import TrainingError, UserError
from lbc.types import EnvironmentSpec, EnvironmentStep

_Encode = Callable[[Any], np.ndarray]

_ATARI = "ale_py"  # registers its games here too; they have a family of their own
_PLAIN_GAMES = "gymnasium.envs.classic_control"
_UNLISTED = (  # continuous control, experimental JAX versions, and functions that only say "has moved"
    "gymnasium.envs.mujoco",
    "gymnasium.envs.phys2d",
    "gymnasium.envs.tabular",
    "gymnasium.envs:",
)


def registered_ids() -> list[str]:
    """Every id in Gymnasium's registry, whether or not it can be played here."""
    return [name for name in gymnasium.registry if not _entry_point(name).startswith(_ATARI)]


def ids() -> list[str]:
    """Ids worth showing; those with continuous actions among them are refused when they are built."""
    return sorted(name for name in registered_ids() if not _entry_point(name).startswith(_UNLISTED))


def _entry_point(name: str) -> str:
    entry_point = gymnasium.registry[name].entry_point
    return entry_point if isinstance(entry_point, str) else f"{getattr(entry_point, '__module__', '')}:"


class GymnasiumVector(InTwoHalves):
    """Copies stepped one after the other by Gymnasium's SyncVectorEnv, in its next-step autoreset mode.

    Vectors become float32, images channels first, and a discrete observation a one-hot vector.
    """

    def __init__(self, config: EnvironmentConfig, num_envs: int) -> None:
        build = _factory(config) if is_own(config.id) else _registered(config)
        with _blaming(config.id, "its factory", UserError):
            probe = build()
            action_space, observation_space = probe.action_space, probe.observation_space
            probe.close()
        if isinstance(action_space, spaces.Box):
            raise UserError(
                f"environment {config.id} has continuous actions; choose one with discrete actions, "
                f'or discretise them in a factory of your own (id = "module:factory")'
            )
        if not isinstance(action_space, spaces.Discrete):
            raise UserError(
                f"environment {config.id} has the action space {action_space}; only Discrete is supported, "
                f'convert it in a factory of your own (id = "module:factory")'
            )
        shape, dtype, self._encode = _encoder(config.id, observation_space)
        with _blaming(config.id, "its factory", UserError):
            self._environments = SyncVectorEnv(
                [build] * num_envs, copy=False, autoreset_mode=AutoresetMode.NEXT_STEP
            )
        self._lowest_action = int(action_space.start)
        self._restarting = np.zeros(num_envs, bool)  # [E] copies whose episode ended at the last step
        self.num_envs = num_envs
        self.spec = EnvironmentSpec(
            id=config.id,
            frame_shape=shape,
            frame_dtype=dtype,
            num_actions=int(action_space.n),
            frame_stack=config.frame_stack if len(shape) == 3 else 1,
        )

    def reset(self, seed: int) -> EnvironmentStep:
        with _blaming(self.spec.id, "reset"):
            observation, _ = self._environments.reset(seed=int(seed))
        self._restarting = np.zeros(self.num_envs, bool)
        return self._sound(opening_step(self._encode(observation)))

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        actions = checked_actions(actions, self.num_envs, self.spec.num_actions)
        with _blaming(self.spec.id, "step"):
            said = self._environments.step(actions + self._lowest_action)
        observation, reward, terminated, truncated, _ = said
        first = self._restarting
        truncated = truncated & ~terminated  # a time limit may fall on the very step of the game's end
        self._restarting = terminated | truncated
        with np.errstate(over="ignore"):  # infinite in float32 is told below
            reward = reward.astype(np.float32)
        frame, lost = self._encode(observation), np.zeros_like(first)
        return self._sound(EnvironmentStep(frame, reward, terminated, truncated, first, lost))

    def begin_anew(self, which: np.ndarray) -> np.ndarray:
        with _blaming(self.spec.id, "reset"):
            observation, _ = self._environments.reset(options={"reset_mask": which})
        self._restarting = self._restarting & ~which
        return self._sound(opening_step(self._encode(observation))).frame

    def _sound(self, step: EnvironmentStep) -> EnvironmentStep:
        """A number that is none would spread into every weight; it is told where it came from."""
        for what, numbers in (("a reward", step.reward), ("an observation", step.frame)):
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                raise TrainingError(f"environment {self.spec.id} gave {what} that is not finite.")
        return step

    def close(self) -> None:
        self._environments.close()

    @property
    def resumable(self) -> bool:
        """Classic control alone is known to keep all of its state in plain attributes."""
        return type(self._environments.envs[0].unwrapped).__module__.startswith(_PLAIN_GAMES)

    def snapshot(self) -> dict[str, Any]:
        """The plain attributes of every game and of every wrapper around it."""
        layers = [layer for game in self._environments.envs for layer in _layers(game)]
        return {
            "sent": self._sent,
            "restarting": self._restarting,
            "games": [{k: v for k, v in vars(layer).items() if _is_plain(v)} for layer in layers],
            "vector": {k: v for k, v in vars(self._environments).items() if _is_plain(v)},
        }

    def resume(self, state: dict[str, Any]) -> None:
        self._sent, self._restarting = state["sent"], state["restarting"]
        layers = [layer for game in self._environments.envs for layer in _layers(game)]
        for layer, saved in zip(layers, state["games"], strict=True):
            vars(layer).update(saved)
        vars(self._environments).update(state["vector"])


@contextlib.contextmanager
def _blaming(name: str, doing: str, kind: type[Exception] = TrainingError) -> Iterator[None]:
    """A game may raise anything; one sentence says which game it was, what, and where in its code."""
    try:
        yield
    except (UserError, TrainingError):
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise kind(
            f"environment {name} failed in {doing} ({what}; {place.filename}, line {place.lineno})."
        ) from error


def _layers(game: Any) -> list[Any]:
    """A game and the wrappers around it, outermost first."""
    found = [game]
    while hasattr(found[-1], "env"):
        found.append(found[-1].env)
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.dtype != object
    return value is None or isinstance(value, (bool, int, float, str, np.generic, np.random.Generator))


def _registered(config: EnvironmentConfig) -> Callable[[], gymnasium.Env]:
    def build() -> gymnasium.Env:
        try:
            return gymnasium.make(
                config.id, max_episode_steps=config.max_episode_steps or None, disable_env_checker=True
            )
        except (gymnasium.error.Error, ImportError) as error:
            raise UserError(f"environment {config.id} cannot be built: {error}") from error

    return build


def _factory(config: EnvironmentConfig) -> Callable[[], gymnasium.Env]:
    factory = imported(config.id, f"environment {config.id}")

    def build() -> gymnasium.Env:
        environment = factory()
        if not isinstance(environment, gymnasium.Env):
            raise UserError(
                f"environment {config.id} must return a gymnasium.Env, not a {type(environment).__name__}"
            )
        if config.max_episode_steps:
            environment = gymnasium.wrappers.TimeLimit(environment, config.max_episode_steps)
        return environment

    return build


def _encoder(environment_id: str, space: spaces.Space) -> tuple[tuple[int, ...], type, _Encode]:
    """Shape and dtype of a frame, and the function from a batch of observations to frames."""
    if isinstance(space, spaces.Discrete):
        one_hot = np.eye(int(space.n), dtype=np.float32)
        lowest = int(space.start)
        return (int(space.n),), np.float32, lambda observation: one_hot[observation - lowest]
    if isinstance(space, spaces.Box):
        shape = space.shape
        dtype: type = np.uint8 if space.dtype == np.uint8 else np.float32
        if len(shape) == 1:
            return shape, np.float32, lambda observation: observation.astype(np.float32)
        if len(shape) == 2:
            return (1, *shape), dtype, lambda observation: observation[:, None].astype(dtype)
        if len(shape) == 3 and dtype is np.uint8:
            height, width, channels = shape
            return (
                (channels, height, width),
                np.uint8,
                lambda observation: np.ascontiguousarray(observation.transpose(0, 3, 1, 2)),
            )
    raise UserError(
        f"no torso fits observation space {space} of environment {environment_id}; wrap it in a factory of "
        f'your own (id = "module:factory") that returns a vector, a byte image (height, width, channels) '
        f"or a Discrete observation"
    )
