"""One sitting of a run: what ``lbc train`` and ``lbc.train`` share.

What it needs is imported when it runs, so that ``lbc --help`` answers at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lbc.errors import UserError

if TYPE_CHECKING:
    from lbc.config import Config
    from lbc.reporting import RunDirectory
    from lbc.reporting.callbacks import Callback

_FIRST_LINE = "# The whole configuration of this run; `lbc train` with this file's path runs it again.\n\n"


@dataclass(frozen=True)
class Session:
    """A configuration, the directory that takes it down, and whether a run that lies there goes on."""

    config: Config
    directory: RunDirectory
    name: str
    resume: bool
    longer: bool = False  # that run goes on with a larger budget than it had

    def train(
        self,
        should_stop: Callable[[], bool],
        callbacks: Sequence[Callback] = (),
        stream: TextIO | None = None,
    ) -> dict[str, Any]:
        """To the end of the budget, or until asked to stop; returns the summary, as in summary.json."""
        from lbc.reporting import RunReporter
        from lbc.reporting.callbacks import CallbackReporter
        from lbc.reporting.plain import plain

        config, directory, resume = self.config, self.directory, self.resume
        title = " · ".join(dict.fromkeys([self.name, config.environment.id, f"seed {config.run.seed}"]))
        if resume:
            directory.lock()
            if not directory.saved():
                directory.forget()
                resume = False
        sinks = config.run.sinks
        with RunReporter(directory, _text_of(config), title, stream, resume, self.longer, sinks) as reporter:
            told = CallbackReporter(reporter, callbacks)
            from lbc.runtime.loop import train  # only now: bad input need not wait for it

            path, stopping = directory.path, lambda: told.stopping or should_stop()
            summary = train(config, told, path, stopping, resume, on_checkpoint=told.checkpoint)
        if told.error is not None:
            raise told.error
        found: dict[str, Any] = plain(summary)
        return found


def begin(
    preset: str | Config,
    overrides: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    out: str | Path | None = None,
    **options: Any,
) -> Session:
    """A new run; or, where the very same one lies unfinished in `out`, that one."""
    from lbc.cards import resolve
    from lbc.reporting import RunDirectory

    config = resolve(preset, overrides, **options)
    name = preset if isinstance(preset, str) else config.environment.id
    full_name = "-".join(dict.fromkeys([name, config.environment.id, f"s{config.run.seed}"]))
    directory = RunDirectory(Path(out) if out else _new_directory(full_name))
    return Session(config, directory, name, directory.unfinished(_text_of(config)))


def go_on(path: Path, frames: float | None = None, minutes: float | None = None) -> Session:
    """A run that was interrupted, or, with a larger budget, one that has ended."""
    from lbc.cards import from_toml, text_of
    from lbc.reporting import RunDirectory

    directory, longer = RunDirectory(path), frames is not None or minutes is not None
    directory.require_run(longer)
    config = from_toml(text_of(directory.config))
    if longer:
        config = _with_budget(config, directory, frames, minutes)
    return Session(config, directory, path.name, resume=True, longer=longer)


def _with_budget(config: Config, run: RunDirectory, frames: float | None, minutes: float | None) -> Config:
    """The same run for longer: nothing else may depend on its budget."""
    from lbc.cards import resolve
    from lbc.environments import make
    from lbc.reporting.rundir import read_metrics
    from lbc.runtime.experiment import controller_scope

    last = (read_metrics(run.metrics) or [{}])[-1]
    had_frames, had_minutes = int(last.get("frames", 0)), last.get("seconds", 0.0) / 60.0
    if frames is not None and frames <= had_frames:
        raise UserError(f"the run in '{run.path}' has had {had_frames:,} frames; --frames must be more.")
    if minutes is not None and minutes <= had_minutes:
        raise UserError(f"the run in '{run.path}' has had {had_minutes:.1f} minutes; --minutes must be more.")
    probe = make(config.environment, 1)
    scope = controller_scope(config, probe.spec)
    probe.close()
    budget: dict[str, Any] = {"frames": frames, "minutes": minutes}
    return resolve(config, {"controller": {"scope": scope}}, **budget)


def _text_of(config: Config) -> str:
    from lbc.cards import to_toml

    return _FIRST_LINE + to_toml(config)


def _new_directory(name: str) -> Path:
    """Under runs/, named by what it is and when it began; a number where that name is taken."""
    safe = re.sub(r"[^\w.-]+", "-", name)  # no '+': the path of its config.toml is a preset, too
    first = Path("runs") / f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = first, 2
    while path.exists():
        path, number = first.with_name(f"{first.name}-{number}"), number + 1
    return path
