"""Which game, under which protocol."""

from __future__ import annotations

from dataclasses import dataclass

from lbc.errors import UserError


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
        if not self.id:
            raise UserError("id must name an environment, it is empty")
        self._check_integer("frame_stack", 1, "a network sees at least the newest frame")
        self._check_integer("image_size", 16, "smaller frames hide the game", 210, "the screen has no more")
        self._check_integer("action_repeat", 1, "an action lasts at least one frame")
        self._check_integer("max_noops", 0, "0 switches idle starts off")
        self._check_integer("max_episode_frames", self.action_repeat, "an episode holds at least one action")
        self._check_integer("threads", 0, "0 uses one thread per core")
        self._check_integer("deepsea_depth", 2, "a sea of depth 1 has no corner to reach")
        self._check_integer("catch_rows", 2, "the ball needs a row to fall through")
        self._check_integer("catch_columns", 2, "there must be something to choose")
        self._check_integer("catch_actions", 3, "left, stay and right are needed")
        self._check_integer("max_episode_steps", 0, "0 is the environment's own limit")
        self._check_stickiness("sticky_actions", self.sticky_actions)
        self._check_stickiness("minatar_sticky", self.minatar_sticky)
        if self.catch_rows - 1 < self.catch_columns // 2:
            raise UserError(
                f"catch_rows must exceed half of catch_columns, so that every ball can be caught; "
                f"they are {self.catch_rows} and {self.catch_columns}"
            )

    def _check_integer(
        self, field: str, low: int, why_low: str, high: int | None = None, why_high: str = ""
    ) -> None:
        value = getattr(self, field)
        if value < low:
            raise UserError(f"{field} must be at least {low} ({why_low}), it is {value}")
        if high is not None and value > high:
            raise UserError(f"{field} must be at most {high} ({why_high}), it is {value}")

    def _check_stickiness(self, field: str, value: float) -> None:
        if not 0.0 <= value < 1.0:
            raise UserError(f"{field} must be a probability in [0, 1) (at 1 no action counts), it is {value}")
