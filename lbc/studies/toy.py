"""Do a population and a controller pay?  LBC-BM against random selection and against one policy."""

from __future__ import annotations

from lbc.studies.plan import Study, Variant

TASKS = {"Catch": "catch", "DeepSea, depth 10": "deepsea"}
ALGORITHMS = {"LBC-BM": "", "random selection": "+random-selection", "one policy": "+one-policy"}


def study() -> Study:
    return Study(
        "toy",
        "Do a population and a controller pay?",
        tuple(
            Variant(label, preset + overlay, task=task)
            for task, preset in TASKS.items()
            for label, overlay in ALGORITHMS.items()
        ),
        seeds=5,
    )
