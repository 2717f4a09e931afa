"""lbc from Python; ``import lbc`` makes all of it available (docs/api.md).

::

    result = lbc.train("catch", frames=60_000, seed=3)      # as `lbc train`, with the same run directory
    agent = result.agent()
    action, state = agent.act(observation, state, reward)
    lbc.evaluate(result.path)["favourite"].mean
    lbc.load_run(result.path).metrics                       # a DataFrame
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lbc.agents import Agent, Scores, load_agent
from lbc.agents import Episode as Episode
from lbc.agents import evaluate as evaluate_agent
from lbc.cli.session import Session, begin, go_on
from lbc.cli.stopping import StopRequest
from lbc.cli.train import parse_frames
from lbc.config import Config
from lbc.errors import TrainingError as TrainingError
from lbc.errors import UserError
from lbc.reporting.callbacks import Callback
from lbc.reporting.plain import plain
from lbc.reporting.records import RunRecord as RunRecord
from lbc.reporting.records import load_run
from lbc.reporting.records import load_runs as load_runs

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class TrainedRun:
    """What came of a training."""

    path: Path  # the run directory
    summary: dict[str, Any]

    def agent(self, device: str = "auto") -> Agent:
        """The trained agent; its own code may be imported, since it was just trained with it."""
        return load_agent(self.path, device, allow_code=True)

    def history(self) -> DataFrame:
        """One row per report."""
        return load_run(self.path).metrics


def train(
    preset: str | Config,
    *,
    env: str | None = None,
    frames: int | float | str | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    runtime: str | None = None,
    init: str | Path | None = None,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    show: bool = True,
    **overrides: Any,
) -> TrainedRun:
    """Trains a preset (`"minatar+random-selection"`, a card's path) or a whole configuration.

    Options mean what they mean to ``lbc train``.  `overrides` are sections with the values to change,
    ``learner={"learning_rate": 1e-3}``, or single values, ``**{"learner.learning_rate": 1e-3}``.
    `show`: False prints nothing.  Ctrl-C ends the run as it does on the command line, then raises.
    """
    session = begin(
        preset,
        _by_section(overrides),
        out,
        env=env,
        frames=_number(frames),
        minutes=minutes,
        seed=seed,
        runtime=runtime,
        init=None if init is None else str(init),
    )
    return _train(session, callbacks, show)


def resume(
    directory: str | Path,
    *,
    frames: int | float | str | None = None,
    minutes: float | None = None,
    callbacks: Sequence[Callback] = (),
    show: bool = True,
) -> TrainedRun:
    """Goes on with a run that was stopped, or, with a larger budget, with one that has ended, as
    ``lbc train --resume`` does."""
    return _train(go_on(Path(directory), _number(frames), minutes), callbacks, show)


def evaluate(
    agent: Agent | str | Path,
    episodes: int = 32,
    seed: int = 0,
    device: str = "auto",
    allow_code: bool = False,
    ways: Sequence[str] = (),
) -> dict[str, Scores]:
    """Whole episodes in every way that an agent, or the agent of a run directory, can play, or in these."""
    found = agent if isinstance(agent, Agent) else load_agent(agent, device, allow_code)
    return evaluate_agent(found, episodes, seed, ways=ways)


def _train(session: Session, callbacks: Sequence[Callback], show: bool) -> TrainedRun:
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a script, read again by a process
        raise UserError("a script that calls lbc.train needs `if __name__ == '__main__':` around it.")
    threads = torch.get_num_threads()  # a run has its own number; the program gets its back
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        stream = None if show else stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        stop = stack.enter_context(StopRequest(command=False))
        summary = session.train(stop.requested, callbacks, stream)
    if stop.exit_code:
        raise KeyboardInterrupt if stop.exit_code == 130 else SystemExit(stop.exit_code)
    return TrainedRun(session.directory.path, summary)


def _number(frames: int | float | str | None) -> float | None:
    return parse_frames(frames) if isinstance(frames, str) else frames


def _by_section(overrides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {}
    for name, value in overrides.items():
        section, dot, key = name.partition(".")
        if not dot and not isinstance(value, Mapping):
            raise UserError(
                f"'{name}' is no option of lbc.train; a config value is given as section={{'key': value}}."
            )
        tables.setdefault(section, {}).update(plain({key: value} if dot else value))
    return tables
