"""``lbc study``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lbc.cli.stopping import StopRequest
from lbc.cli.train import parse_frames
from lbc.errors import UserError

_STALE = ("refuse", "keep", "rerun")


@dataclass(frozen=True)
class Study:
    """Answer a question that needs several runs: do what is missing, draw, and say what was found.

    Args:
        name: ablation, atari, entropy, kl, ladder, minatar, readings, regions, runtimes, toy or tsne.
        seeds: How many, as in 3, or which, as in 4-6; by default the study's own number.
        frames: Budget of every run instead of the study's, as in 2M.
        jobs: Runs at a time; by default one per usable core.
        out: Folder of all studies; this one's is inside.
        runs: Draw these run directories, or folders of them, instead of the study's own; runs nothing.
        draw: Draw what has finished; runs nothing.
        only: These variants alone.
        task: These tasks alone.
        set: Change one config value of every variant, as in actor.num_envs=8.
        also: Existing runs in the same figure, as in LABEL=DIRECTORIES; they may hold wildcards.
        stale: A run whose card has changed since: refuse, keep or rerun.
        figure: Where the figure goes; by default beside the runs.
        smooth: Reports in a running mean; 1 for none.
    """

    name: str
    seeds: str | None = None
    frames: str | None = None
    jobs: int | None = None
    out: str = "runs/studies"
    runs: tuple[str, ...] = ()
    draw: bool = False
    only: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    stale: str = "refuse"
    figure: str | None = None
    smooth: int = 5

    def run(self) -> int:
        from lbc.studies import conduct, plan, show
        from lbc.studies.catalogue import find_study
        from lbc.studies.given import panels_given

        study = find_study(self.name).only(self.only, self.task)
        self._check()
        figure = Path(self.figure) if self.figure else None
        if self.runs:
            panels = panels_given([Path(path) for path in self.runs])
            show(study, panels, Path(self.out) / study.name, figure, self.smooth)
            return 0
        study = replace(study, variants=tuple(replace(v, sets=(*v.sets, *self.set)) for v in study.variants))
        frames = None if self.frames is None else parse_frames(self.frames)
        runs = plan(study, parse_seeds(self.seeds, study.seeds), Path(self.out), frames)
        with StopRequest() as stop, contextlib.suppress(KeyboardInterrupt):  # by a second signal
            code = conduct(
                *(study, runs, figure, self.jobs, self.stale, self.smooth, self.also, self.draw),
                should_stop=stop.requested,
            )
        return stop.exit_code or code

    def _check(self) -> None:
        for option, value in (("jobs", self.jobs), ("smooth", self.smooth)):
            if value is not None and value < 1:
                raise UserError(f"--{option} is {value}, but must be at least 1.")
        for path in (*self.runs, self.out, self.figure or ""):
            if "\0" in path:
                raise UserError(f"'{path}' is no path.")
        check_stale(self.stale)
        if self.runs and (self.only or self.task or self.set or self.also or self.seeds or self.frames):
            raise UserError("--runs draws runs as they are; only --out, --figure and --smooth go with it.")


def check_stale(word: str) -> None:
    if word not in _STALE:
        raise UserError(f"--stale is '{word}', but must be {', '.join(_STALE[:-1])} or {_STALE[-1]}.")


def parse_seeds(text: str | None, default: int) -> Sequence[int]:
    """``3`` for seeds 1 to 3, ``4-6`` for these."""
    found = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9})", text if text is not None else str(default))
    first, last = (int(found[1] or 1), int(found[2])) if found else (1, 0)
    if last < first:
        raise UserError(f"--seeds is '{text}', but must be a number such as 3, or a range such as 4-6.")
    return range(first, last + 1)
