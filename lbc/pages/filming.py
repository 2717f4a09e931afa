"""Who is steering: a film of a run's newest checkpoint, made by ``lbc play`` at lowest priority."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbc.pages.overview import Run

STEPS = 240  # of a film
_FILMS = 6  # kept on disk
_SECONDS = 180.0  # that a film may take
_PAUSE = 60.0  # seconds between two films of one run


@dataclass(frozen=True)
class Film:
    """``version`` names the checkpoint of the film that is there; empty where there is none."""

    version: str
    making: bool
    says: str


class Studio:
    """One film at a time; whoever asks while it is at work is told to wait."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lbc-films-"))
        self._films: OrderedDict[str, tuple[str, str, float]] = OrderedDict()  # version, complaint, when
        self._process: subprocess.Popen[str] | None = None
        self._job = ("", "", 0.0)  # run, version, when begun

    def film(self, run: Run) -> Film:
        """What there is of a run; begins a new film where its checkpoint is newer and nobody films."""
        self._look()
        version, complaint, made = self._films.get(run.id, ("", "", 0.0))
        wanted = checkpoint(run)
        if not wanted:
            return Film("", False, "No checkpoint yet; a film follows the first one.")
        if own_code(run.config or {}):
            says = f"This run uses code of your own; `lbc play {run.directory.path}` films it."
            return Film("", False, says)
        if wanted != version and time.monotonic() - made > _PAUSE and self._process is None:
            self._begin(run, wanted)
        there = version if self.path(run.id).exists() else ""
        return Film(there, self._process is not None and self._job[0] == run.id, complaint)

    def path(self, identity: str) -> Path:
        return self._folder / f"{identity}.gif"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self, run: Run, version: str) -> None:
        work = self._folder / f"{run.id}.new.gif"
        command = [sys.executable, "-m", "lbc", "play", str(run.directory.path), "--out", str(work)]
        self._process = subprocess.Popen(
            [*command, "--steps", str(STEPS)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        )
        with contextlib.suppress(OSError, AttributeError):  # gone already, or not a POSIX system
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 19)
        self._job = (run.id, version, time.monotonic())

    def _look(self) -> None:
        """Takes in the film that is at work, if it has ended."""
        if self._process is None:
            return
        identity, version, begun = self._job
        if self._process.poll() is None:
            if time.monotonic() - begun < _SECONDS:
                return
            self._process.kill()
        words = self._process.communicate()[1].strip().splitlines()
        work = self._folder / f"{identity}.new.gif"
        complaint = ""
        if self._process.returncode == 0 and work.exists():
            os.replace(work, self.path(identity))
        else:
            work.unlink(missing_ok=True)
            complaint = words[-1].removeprefix("lbc: ") if words else "The film took too long."
        self._process = None
        self._films.pop(identity, None)
        self._films[identity] = (version, complaint, time.monotonic())
        while len(self._films) > _FILMS:
            old, _ = self._films.popitem(last=False)
            self.path(old).unlink(missing_ok=True)


def checkpoint(run: Run) -> str:
    """A name for the newest weights of a run; empty where there are none."""
    folder = run.directory.checkpoints
    with contextlib.suppress(OSError):
        frames = [int(name) for name in os.listdir(folder) if name.isdigit()]
        if frames:
            return str(max(frames))
        return str((folder / "weights.safetensors").stat().st_mtime_ns)
    return ""


def own_code(config: dict[str, Any]) -> bool:
    """Whether a configuration names code (module:factory): that runs only if its owner says so."""
    return any(":" in text for text in _texts(config))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
