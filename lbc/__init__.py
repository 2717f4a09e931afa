"""Learnable Behavior Control: a population of policies, one behavior, and bandits that choose it.

``lbc.train``, ``lbc.load_agent``, ``lbc.load_run`` and their like come from `lbc.api`, which is imported when
one of them is first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbc.api import (
        Agent,
        Callback,
        Config,
        Episode,
        RunRecord,
        Scores,
        TrainedRun,
        TrainingError,
        UserError,
        evaluate,
        load_agent,
        load_run,
        load_runs,
        resume,
        train,
    )

# Threads that share a matrix product wait for each other busily, on Linux for milliseconds.  Beside other
# processes on the same cores that is many times slower (docs/performance.md).  torch must not be loaded yet.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Callback",
    "Config",
    "Episode",
    "RunRecord",
    "Scores",
    "TrainedRun",
    "TrainingError",
    "UserError",
    "evaluate",
    "load_agent",
    "load_run",
    "load_runs",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lbc' has no attribute '{name}'")
    from lbc import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
