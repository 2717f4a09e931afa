"""Which policy should a learner learn?  The four readings of the target policy on three tasks."""

from __future__ import annotations

from lbc.studies.plan import Study, Variant

TASKS = {"Catch": "catch", "Long Catch": "long-catch", "MinAtar Breakout": "minatar"}
READINGS = {
    "(a) printed": "printed",
    "(b) entropy-controlled": "entropy-controlled",
    "(c) scale-free": "scale-free",
    "(d) decoupled": "decoupled",
}


def study() -> Study:
    return Study(
        "readings",
        "Which policy should a learner learn?",
        tuple(
            Variant(label, f"{preset}+{overlay}", task=task)
            for task, preset in TASKS.items()
            for label, overlay in READINGS.items()
        ),
    )
