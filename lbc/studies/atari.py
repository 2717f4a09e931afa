"""Do a population and a controller pay on Atari?  The question of `toy`, on games that one core can carry."""

from __future__ import annotations

from lbc.studies.plan import Study, Variant
from lbc.studies.toy import ALGORITHMS

TASKS = {
    "Pong": ("environment.id=ALE/Pong-v5", "run.frames=3_000_000"),
    "Breakout": ("environment.id=ALE/Breakout-v5", "run.frames=2_000_000", "actor.stagger_steps=1800"),
}


def study() -> Study:
    return Study(
        "atari",
        "Do a population and a controller pay on Atari?",
        tuple(
            Variant(label, f"atari-laptop{overlay}", ("run.runtime=serial", *sets), task)
            for task, sets in TASKS.items()
            for label, overlay in ALGORITHMS.items()
        ),
    )
