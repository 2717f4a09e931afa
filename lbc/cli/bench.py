"""``lbc bench``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lbc.runtime.bench import Speed

_EXPLAINED = {
    "environments": "waiting for the games",
    "inference": "all policies, mixture, actions",
    "storage": "rows into the buffer, batches out of it",
    "learners": "waiting for the learners",
    "reports": "everything else",
}


@dataclass(frozen=True)
class Bench:
    """Measure speed: the bare emulator, acting, training, and what share of the time each part takes.

    Args:
        preset: Preset or card file, with overlays after '+'.
        env: Games to measure, by default the preset's.
        minutes: Time for each game; starting and warming up are not counted.
        json: Print one JSON object; the tables go to stderr.
        runtime: local or serial.
        set: Change one config value, as in actor.num_envs=512.
    """

    preset: str = "atari"
    env: tuple[str, ...] = ()
    minutes: float = 1.0
    json: bool = False
    runtime: str | None = None
    set: tuple[str, ...] = ()

    def run(self) -> int:
        from lbc.cards import resolve
        from lbc.reporting.machine import machine
        from lbc.runtime.bench import measure

        configs = [
            resolve(self.preset, (*self.set, "run.evaluation_episodes=0"), env=game, runtime=self.runtime)
            for game in self.env or (None,)
        ]
        found: list[Speed] = []
        say = partial(print, file=sys.stderr if self.json else sys.stdout, flush=True)
        for config in configs:
            say(f"{config.environment.id}, {self.preset}")
            found.append(measure(config, 60.0 * self.minutes / 5, say))
            say(_table(found[-1]))
        if self.json:
            games = [speed.as_dict() for speed in found]
            print(json.dumps({"preset": self.preset, "machine": machine(), "games": games}, indent=1))
        return 0


def _table(speed: Speed) -> str:
    lines = [
        f"trained / bare        {speed.ratio:10.2f}",
        f"learner samples       {speed.learner_samples:10,.0f} per second, {speed.updates:,.1f} updates each",
        f"policy lag            {_number(speed.policy_lag)} updates",
        f"sample age            {_number(speed.sample_age)} actor steps",
        f"stored                {speed.bytes_per_step:10,} bytes per step",
        f"memory                {speed.memory_before:10,.0f} MB before, {speed.memory_after:,.0f} MB after"
        + (f", {speed.device_memory:,.0f} MB on the device" if speed.device_memory else ""),
        *([f"learners busy         {speed.learner_busy:10.0%}"] if speed.learner_busy else ()),
        "time of the main thread while training",
    ]
    lines += [f"  {part:<13}{share:16.0%}  {_EXPLAINED[part]}" for part, share in speed.time.items()]
    return "\n".join([*lines, ""])


def _number(value: float | None) -> str:
    return f"{'-' if value is None else format(value, '.1f'):>10}"
