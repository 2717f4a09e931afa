"""What a result has cost: game time, and result per frame."""

from __future__ import annotations

FRAMES_PER_SECOND = 60.0
_SECONDS_PER_DAY = 86_400.0


def game_time(frames: float) -> float:
    """Days that a person would sit before the screen to see ``frames``, at 60 frames a second."""
    return frames / FRAMES_PER_SECOND / _SECONDS_PER_DAY


def learning_efficiency(result: float, frames: float) -> float:
    """Result per frame of training.  In the paper a score enters as a fraction, records as a count."""
    return result / frames
