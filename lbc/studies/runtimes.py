"""Does the local runtime learn as the serial one does, frame by frame?"""

from __future__ import annotations

from lbc.studies.plan import Study, Variant

TASKS = {"Catch": "catch", "CartPole": "cartpole", "MinAtar Breakout": "minatar"}
RUNTIMES = ("serial", "local")


def study() -> Study:
    return Study(
        "runtimes",
        "Does the local runtime learn as the serial one does?",
        tuple(
            Variant(runtime, preset, (f"run.runtime={runtime}", "run.evaluation_episodes=0"), task=task)
            for task, preset in TASKS.items()
            for runtime in RUNTIMES
        ),
        seeds=3,
    )
