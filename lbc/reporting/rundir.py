"""The run directory, a public contract.

::

    DIR/config.toml          fully resolved; `lbc train DIR/config.toml` runs it again
    DIR/metrics.jsonl        one JSON object per report
    DIR/tensorboard/         the same as TensorBoard events
    DIR/checkpoints/         weights (safetensors)
    DIR/machine.json         command, commit, and where it ran last: processor, cores, device, versions;
                             command and commit of earlier sittings
    DIR/eval.json            what `lbc eval` found
    DIR/summary.json         at the end
    DIR/learning_curve.png   at the end
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

from lbc.cards.toml import parsed, text_of
from lbc.errors import TrainingError, UserError
from lbc.reporting.plain import plain

MOST_FOLDERS, DEPTH = 20_000, 4  # of a search for runs


class RunDirectory:
    """Paths of one run, and the three text files in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.metrics = path / "metrics.jsonl"
        self.machine = path / "machine.json"
        self.summary = path / "summary.json"
        self.evaluation = path / "eval.json"
        self.picture = path / "learning_curve.png"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self._lock: int | None = None  # a handle

    def lock(self) -> None:
        """One process at a time; the system lets go of it when the process ends, however it ends."""
        if self._lock is None and fcntl is not None:
            lock = os.open(self.path, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise UserError(f"another process is at work on the run in '{self.path}'.") from None
            self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def refuse_other_run(self) -> None:
        """Two runs in one directory would give a mixed curve, so the first one keeps it."""
        if self.config.exists() or self.metrics.exists():
            raise UserError(f"'{self.path}' already holds a run; choose another directory with --out.")

    def unfinished(self, config_text: str) -> bool:
        """Whether the very run that is wanted lies here and can go on, if only from its beginning."""
        if not self.config.exists() or self.config.read_bytes() != config_text.encode():
            return False
        return not self._has_ended() and (self.saved() or not self.summary.exists())

    def saved(self) -> bool:
        """Whether there is a checkpoint to go on from; one of before the first step is none."""
        return any(path.name.isdigit() and int(path.name) > 0 for path in self.checkpoints.glob("*/"))

    def forget(self) -> None:
        """A run that was killed before its first checkpoint begins again."""
        for path in (self.metrics, self.config):
            path.unlink(missing_ok=True)

    def _has_ended(self) -> bool:
        return read_json(self.summary).get("outcome") == "finished"

    def require_run(self, longer: bool = False) -> None:
        """`longer`: one that has ended may go on, too, because its budget grows."""
        if not self.config.exists():
            raise UserError(f"'{self.path}' holds no run that could be resumed.")
        if self._has_ended() and not longer:
            raise UserError(
                f"the run in '{self.path}' has ended; a larger --frames or --minutes lets it go on."
            )

    def position(self) -> int:
        """Bytes of reports so far."""
        return self.metrics.stat().st_size if self.metrics.exists() else 0

    def cut(self, position: int) -> None:
        """Forgets the reports behind `position`, and the summary of a run that goes on."""
        if self.position() > position:
            os.truncate(self.metrics, position)
        self.summary.unlink(missing_ok=True)

    def create(self, config_text: str) -> None:
        self.refuse_other_run()
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self.lock()
            self._write_config(config_text)
        except OSError as error:
            raise UserError(
                f"'{self.path}' cannot hold a run ({error.strerror}); choose another directory with --out."
            ) from None

    def change_config(self, text: str) -> None:
        """Of a run that goes on with another budget."""
        with _telling_of_the_disk(self.config):
            self._write_config(text)

    def _write_config(self, text: str) -> None:
        whole = self.config.with_suffix(".tmp")  # half a configuration would be another run's
        whole.write_text(text, encoding="utf-8")
        os.replace(whole, self.config)

    def append(self, metrics: dict[str, Any]) -> None:
        """One line, on disk at once: a killed run keeps all that it had reported."""
        line = json.dumps(plain(metrics), allow_nan=False) + "\n"
        with _telling_of_the_disk(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(line)

    def note(self, machine: dict[str, Any]) -> None:
        """Where this sitting of the run takes place; of those before it, what was asked of which code."""
        before = read_json(self.machine)
        earlier = before.pop("earlier", [])
        if before:
            earlier = [*earlier, {key: before.get(key) for key in ("command", "commit")}]
        _write_json(self.machine, machine | ({"earlier": earlier} if earlier else {}))

    def finish(self, summary: dict[str, Any]) -> None:
        _write_json(self.summary, summary)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is none, or only half of one yet."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_config(run: RunDirectory) -> dict[str, Any]:
    """By section, as in config.toml; of another program, kept beside ours, as in its config.json."""
    if run.config.is_file():
        return parsed(text_of(run.config), f"'{run.config}'")
    return read_json(run.path / "config.json")


class Evaluated(NamedTuple):
    """What `lbc eval` found with the favoured behavior."""

    mean: float
    episodes: int
    frames: int  # of training, at the checkpoint that played


def read_evaluation(run: RunDirectory) -> Evaluated | None:
    """Of the agent after so many frames; the run may be further. None where nobody has evaluated."""
    found = read_json(run.evaluation)
    try:
        favourite = found["ways"]["favourite"]
        mean, episodes = float(favourite["mean"]), len(favourite["scores"])
        if math.isfinite(mean):
            return Evaluated(mean, episodes, int(found["frames"]))
    except (KeyError, TypeError, ValueError):
        pass  # another program's, or half of one
    return None


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(plain(content), indent=2, allow_nan=False)
    with _telling_of_the_disk(path):
        path.write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def _telling_of_the_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"'{path}' could not be written ({error.strerror}); the last checkpoint is still valid."
        ) from error


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The reports in a metrics.jsonl; what is no report, such as a line cut short by a crash, is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [report for report in found if isinstance(report, dict)]


def run_directories(root: Path) -> Iterator[Path]:
    """``root`` itself, or the run directories in it; links to folders are not followed."""
    for count, (folder, inner, files) in enumerate(os.walk(root)):
        path = Path(folder)
        if "metrics.jsonl" in files or ("config.toml" in files and "checkpoints" in inner):
            yield path
            inner.clear()
        elif len(path.relative_to(root).parts) >= DEPTH or count >= MOST_FOLDERS:
            inner.clear()
        inner[:] = sorted(name for name in inner if not name.startswith("."))
