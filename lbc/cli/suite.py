"""``lbc suite``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lbc.cli.stopping import StopRequest
from lbc.cli.study import check_stale
from lbc.cli.train import parse_frames
from lbc.errors import UserError

if TYPE_CHECKING:
    from lbc.studies.run import Run
    from lbc.studies.suite import Suite as Asked

_RESERVE = 20.0  # seconds at the end of --budget, for the last checkpoints


@dataclass(frozen=True)
class Suite:
    """Games x cards x seeds as one queue: what is done is skipped, what was interrupted goes on.

    Args:
        games: atari57, atari10, atari5, atari3val, minatar, or single games such as pong; several may follow.
        cards: Presets with their overlays, or card files; several may follow.
        seeds: Which, as in 1 2 3 or 1-3; by default 1.
        frames: Budget of every run instead of its card's, as in 50M.
        minutes: Budget of every run in minutes instead of frames.
        runtime: serial or local, instead of the card's.
        set: Change one config value of every run, as in actor.num_envs=8.
        evaluate: Episodes that every finished run plays, as lbc eval does; kept in its eval.json.
        ways: In which ways it plays them, favourite among them; by default in all.
        out: Folder of the queue; alone, with a queue in it, goes on with that.
        jobs: Runs at a time.
        cores: Where several run at a time, split (each has its share) or shared (all have all).
        budget: Minutes of wall time, after which everything has been stopped; the next call goes on.
        stale: A run whose card has changed since: refuse, keep or rerun.
        dry_run: Show the queue and what is left of it; runs nothing.
    """

    games: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    frames: str | None = None
    minutes: float | None = None
    runtime: str | None = None
    set: tuple[str, ...] = ()
    evaluate: int | None = None
    ways: tuple[str, ...] = ()
    out: str = "runs/suite"
    jobs: int = 1
    cores: str = "split"
    budget: float | None = None
    stale: str = "refuse"
    dry_run: bool = False

    def run(self) -> int:
        began = time.monotonic()
        self._check()
        from lbc.scores.tables import show
        from lbc.studies import suite as suites
        from lbc.studies.runner import alone_in
        from lbc.studies.standing import plan_table, states_of

        out = Path(self.out)
        suite = self._asked().over(suites.read(out))
        runs = suite.plan(out)
        if self.dry_run:
            show([plan_table(states_of(runs), self.jobs)], sys.stdout)
            return 0
        with alone_in(out), StopRequest() as stop:
            failures: list[str] = []
            with contextlib.suppress(KeyboardInterrupt):  # a second signal: what is on disk stays
                failures = self._work(suite, runs, stop, began)
        return stop.exit_code or (1 if failures else 0)

    def _work(self, suite: Asked, runs: Sequence[Run], stop: StopRequest, began: float) -> list[str]:
        from lbc.scores.tables import show
        from lbc.studies.display import count_of
        from lbc.studies.plan import missing
        from lbc.studies.runner import execute
        from lbc.studies.standing import states_of, write

        out, episodes = Path(self.out), suite.evaluate
        todo = missing(runs, self.stale)
        trained = [r for r in runs if episodes and r.finished() and r not in todo]
        trained = [run for run in trained if run.evaluation(episodes) is None]
        suite.write(out, runs)
        print(f"{out}: {count_of(len(runs))}, {len(runs) - len(todo)} done already.", flush=True)
        end = math.inf
        if self.budget is not None:
            end = began + 60.0 * self.budget - min(_RESERVE, 15.0 * self.budget)
        failures = execute(
            todo,
            self.jobs,
            among=runs,
            evaluate=episodes,
            ways=suite.ways,
            trained=trained,
            cores=self.cores,
            should_stop=lambda: stop.requested() or time.monotonic() >= end,
        )
        tables, written = write(states_of(runs), episodes, out)
        print()
        show(tables, sys.stdout)
        for path in written:
            print(f"wrote {path}")
        for failure in failures:
            print(failure, file=sys.stderr)
        left = sum(not r.finished() or (episodes > 0 and r.evaluation(episodes) is None) for r in runs)
        if left:
            why = "stopped" if stop.requested() else "the budget is used" if time.monotonic() >= end else ""
            again = shlex.join(["lbc", "suite", "--out", self.out])
            told = f"{left} of {count_of(len(runs))} {'is' if left == 1 else 'are'} left; `{again}` goes on."
            print(f"{why}: {told}" if why else told)
        return failures

    def _asked(self) -> Asked:
        from lbc.studies.suite import Suite, absolute

        return Suite(
            self.games,
            tuple(map(absolute, self.cards)),
            parse_seeds(self.seeds),
            self.set,
            0 if self.frames is None else parse_frames(self.frames),
            self.minutes or 0.0,
            self.runtime or "",
            self.evaluate or 0,
            self.ways,
        )

    def _check(self) -> None:
        if self.jobs < 1:
            raise UserError(f"--jobs is {self.jobs}, but must be at least 1.")
        for option, value in (
            ("evaluate", self.evaluate),
            ("minutes", self.minutes),
            ("budget", self.budget),
        ):
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"--{option} is {value:g}, but must be positive.")
        if self.frames is not None and parse_frames(self.frames) < 1:
            raise UserError(f"--frames is '{self.frames}', but must be at least 1.")
        if self.frames is not None and self.minutes is not None:
            raise UserError("--frames and --minutes contradict each other; give the budget in one of them.")
        if self.ways and "favourite" not in self.ways:
            raise UserError("--ways must name 'favourite', which is what the tables show.")
        if self.cores not in ("split", "shared"):
            raise UserError(f"--cores is '{self.cores}', but must be split or shared.")
        if "\0" in self.out:
            raise UserError(f"'{self.out}' is no path.")
        check_stale(self.stale)


def parse_seeds(words: Sequence[str]) -> tuple[int, ...]:
    """``1 2 5-7`` as whole numbers."""
    found: list[int] = []
    for word in words:
        numbers = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", word)
        first, last = (int(numbers[1]), int(numbers[2] or numbers[1])) if numbers else (1, 0)
        if not first <= last < first + 10_000:
            raise UserError(f"--seeds has '{word}', but takes numbers such as 3, or ranges such as 4-6.")
        found += range(first, last + 1)
    return tuple(found)
