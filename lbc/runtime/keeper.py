"""The keeper: saves a run now and then without holding it up, and brings it back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import SafetensorError

from lbc.errors import TrainingError, UserError
from lbc.parameters import Checkpoint, give, newest, save_weights, take, write
from lbc.parameters.compact import SHARD_BYTES, pack, unpack
from lbc.parameters.snapshot import Tensors
from lbc.runtime.run import Run


@dataclass
class Agenda:
    """When the loop reports and saves next: a share of the budget, or seconds of training."""

    SAVED = ("report_at", "report_seconds_at", "checkpoint_at")

    report_at: float  # share of the budget
    report_seconds_at: float
    checkpoint_at: float  # seconds


class Keeper:
    """::

    keeper.save(run, agenda, mark)      # copies the state, writes it in the background
    keeper.wait()                       # until it is on the disk
    mark = keeper.restore(run, agenda)  # from the newest valid checkpoint

    ``mark`` is how far the reports had come.  A checkpoint that cannot be written ends the run with a
    sentence at the next `save` or `wait`; the one before it stays valid.
    """

    def __init__(
        self, root: Path, form: str = "full", on_checkpoint: Callable[[Path], object] | None = None
    ) -> None:
        self._root = root
        self._compact = form == "compact"
        self._told = on_checkpoint
        self._writer = ThreadPoolExecutor(1, "checkpoint")
        self._writing: Future[Path] | None = None

    def save(self, run: Run, agenda: Agenda, mark: int) -> None:
        self.wait()
        tensors: Tensors = {}
        state = {"run": take(run, tensors, "run"), "agenda": take(agenda, tensors, "agenda")}
        info = {"mark": mark, "episodes": run.tracker.episodes, "seconds": run.tracker.seconds}
        self.save_weights(run)
        checkpoint = Checkpoint(run.tracker.frames, state, tensors, info)
        self._writing = self._writer.submit(self._write, checkpoint)

    def _write(self, checkpoint: Checkpoint) -> Path:
        if not self._compact:
            return write(self._root, checkpoint)
        tensors, packed = pack(checkpoint.tensors)
        small = replace(checkpoint, tensors=tensors, state=checkpoint.state | {"packed": packed})
        return write(self._root, small, shard_bytes=SHARD_BYTES)

    def save_weights(self, run: Run) -> None:
        """The newest weights alone, for whoever plays them; the compact form spares them."""
        if self._compact:
            return
        weights = [learner.to_play() for learner in run.experiment.learners]
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            save_weights(self._root / "weights.safetensors", weights, {"frames": str(run.tracker.frames)})
        except (OSError, SafetensorError) as error:
            raise TrainingError(
                f"the weights could not be written to '{self._root}' ({error}); "
                "the last checkpoint is still valid."
            ) from error

    def restore(self, run: Run, agenda: Agenda) -> int:
        found, complaints = newest(self._root)
        for complaint in complaints:
            warnings.warn(complaint, stacklevel=2)
        if found is None:
            raise UserError(f"'{self._root}' holds no checkpoint that can be read; start the run anew.")
        try:
            tensors = unpack(found.tensors, found.state.get("packed", {}))
            give(run, found.state["run"], tensors, "run")
            give(agenda, found.state["agenda"], tensors, "agenda")
            return int(found.info["mark"])
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the checkpoint in '{self._root}' does not fit this run.") from error

    def wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            path = writing.result()
            if self._told is not None:
                self._told(path)

    def look(self) -> None:
        """Tells of a checkpoint that has reached the disk meanwhile."""
        if self._writing is not None and self._writing.done():
            self.wait()

    def close(self) -> None:
        self._writer.shutdown()
