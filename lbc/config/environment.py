"""Which game, under which protocol."""

from __future__ import annotations

from dataclasses import dataclass

from lbc.config.checks import at_least, require, within


@dataclass(frozen=True)
class EnvironmentConfig:
    """One game and its protocol; a field that does not concern the game's family is ignored.

    The defaults are the Atari protocol of the paper (no sticky actions, all 18 actions, 30 minutes)
    and MinAtar's own (sticky actions 0.1, difficulty ramping).
    """

    id: str = "catch"  # or "deepsea", "MinAtar/Breakout", "ALE/Pong-v5", "CartPole-v1", "module:factory"
    full_action_space: bool = True  # Atari's 18 and MinAtar's 6 actions, or only those the game reacts to
    frame_stack: int = 4  # frames that a network sees at once: Atari and Gymnasium images; others see 1

    # Atari
    image_size: int = 84  # height and width of a frame
    action_repeat: int = 4  # emulator frames per action
    max_noops: int = 30  # an episode starts after 0..max_noops idle frames, drawn uniformly
    sticky_actions: float = 0.0  # chance per frame that the last action is repeated; 0.25 is usual today
    max_episode_frames: int = 108_000  # time limit in emulator frames (30 minutes)
    life_information: bool = False  # learners value nothing beyond a lost life (DQN's way); games go on
    fire_reset: bool = False  # press FIRE once at the start of an episode
    threads: int = 0  # emulator threads; 0 is one per core that this process may use

    # MinAtar
    minatar_sticky: float = 0.1  # chance per step that the previous action is repeated
    minatar_ramping: bool = True  # games get harder as they go on

    # Toy
    deepsea_depth: int = 10
    catch_rows: int = 10
    catch_columns: int = 5
    catch_actions: int = 3  # actions beyond left, stay and right do nothing

    # Toy, MinAtar and Gymnasium
    max_episode_steps: int = 0  # time limit in steps; 0 is the environment's own limit

    def __post_init__(self) -> None:
        require(bool(self.id), "environment.id is empty; name an environment, such as 'catch'.")
        for key, bound in _AT_LEAST.items():
            at_least("environment", key, getattr(self, key), bound)
        at_least("environment", "max_episode_frames", self.max_episode_frames, self.action_repeat)
        within("environment", "image_size", self.image_size, 16, 210)
        for key in ("sticky_actions", "minatar_sticky"):
            within("environment", key, getattr(self, key), 0.0, 0.99)  # at 1 no action arrives
        require(
            self.catch_rows - 1 >= self.catch_columns // 2,
            f"environment.catch_rows is {self.catch_rows}, but must exceed half of catch_columns = "
            f"{self.catch_columns}, so that every ball can be caught.",
        )


_AT_LEAST = {
    "frame_stack": 1,
    "action_repeat": 1,
    "max_noops": 0,
    "threads": 0,
    "deepsea_depth": 2,
    "catch_rows": 2,
    "catch_columns": 2,
    "catch_actions": 3,
    "max_episode_steps": 0,
}
