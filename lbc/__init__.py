"""Learnable Behavior Control: a population of policies, one behavior, and bandits that choose it.

``lbc.train``, ``lbc.load_agent``, ``lbc.load_run`` and their like come from `lbc.api`, which is imported when
one of them is first used.
"""

from __future__ import annotations

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
