"""``lbc train``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from lbc.cli.evaluating import Play
from lbc.cli.session import Session, begin, go_on
from lbc.cli.stopping import StopRequest
from lbc.errors import UserError

_UNITS = {"K": 10**3, "M": 10**6, "B": 10**9}


@dataclass(frozen=True)
class Train:
    """Train a preset and keep everything about the run in one directory.

    Args:
        preset: Preset or card file, with overlays after '+', as in minatar+random-selection.
        env: Environment id instead of the preset's.
        frames: Budget in frames, as in 1_000_000, 20M or 1e6.
        minutes: Budget in minutes instead of frames.
        out: Directory of the run; by default a new one under runs/.
        seed: Seed of everything random.
        runtime: serial (one process, deterministic) or local (environment processes, concurrent learners).
        init: Directory of a run to take the weights from; everything else begins anew.
        resume: Directory of a run to go on with, instead of a preset; with --frames or --minutes, for longer.
        set: Change one config value, as in learner.learning_rate=1e-3.
        film: Film the agent at the end, as lbc play does.
    """

    preset: str
    env: str | None = None
    frames: str | None = None
    minutes: float | None = None
    out: str | None = None
    seed: int | None = None
    runtime: str | None = None
    init: str | None = None
    resume: str | None = None
    set: tuple[str, ...] = ()
    film: bool = False

    def run(self) -> int:
        session = self._session()
        with StopRequest() as stop, contextlib.suppress(KeyboardInterrupt):
            session.train(stop.requested)  # a second signal interrupts it: what is on disk stays
        if self.film and not stop.exit_code:
            return Play(
                str(session.directory.path), allow_code=True
            ).run()  # it was just trained with that code
        return stop.exit_code

    def _session(self) -> Session:
        if self.resume is not None:
            return self._interrupted(Path(self.resume))
        return begin(
            self.preset,
            self.set,
            self.out,
            env=self.env,
            frames=None if self.frames is None else parse_frames(self.frames),
            minutes=self.minutes,
            seed=self.seed,
            runtime=self.runtime,
            init=self.init,
        )

    def _interrupted(self, path: Path) -> Session:
        given = [self.env, self.out, self.seed, self.runtime, self.init]
        if any(value is not None for value in given) or self.set or self.preset != _config_of(self.resume):
            raise UserError(
                "--resume goes on with a run as it is, but for a larger --frames or --minutes; "
                "give no preset and no other option with it."
            )
        return go_on(path, None if self.frames is None else parse_frames(self.frames), self.minutes)


def _config_of(run: str | None) -> str:
    return str(Path(run or "") / "config.toml")


def with_its_card(arguments: Sequence[str]) -> list[str]:
    """``train --resume DIR`` as ``train DIR/config.toml --resume DIR``: a run's configuration is a preset."""
    found = list(arguments)
    if found[:1] == ["train"] and "--resume" in found[1:-1] and found[1].startswith("--"):
        found.insert(1, _config_of(found[found.index("--resume") + 1]))
    return found


def parse_frames(text: str) -> int:
    """``20_000_000``, ``20M`` or ``2e7`` as a whole number."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in _UNITS else (text, "")
    try:
        frames = Decimal(number) * _UNITS.get(unit, 1)
        if frames.adjusted() < 18 and frames == int(frames):  # 1e999999999 would fill the memory
            return int(frames)
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise UserError(f"--frames is '{text}', but must be a whole number such as 1_000_000, 20M or 1e6.")
