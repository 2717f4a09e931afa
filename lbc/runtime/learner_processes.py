"""Learners in processes of their own, for runs on a CPU.

Threads of one process wait for each other's Python: on two cores a fifth of the time.  Weights, moments and
statistics of every learner lie in memory that its process and this one see, so that whoever reports, saves or
publishes finds them in the learner, as ever.  Only while a process is at work must nobody else touch them.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import struct
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from lbc.config import Config
from lbc.environments.processes import end_with_the_parent, leave_signals_to_the_parent, process_context
from lbc.errors import TrainingError, UserError
from lbc.learner import Learner
from lbc.learner.graphed import fill
from lbc.parameters import ParameterServer
from lbc.parameters.shared import SharedTensors
from lbc.runtime.allocator import keep_freed_memory
from lbc.runtime.crew import Crew
from lbc.runtime.experiment import build_learner
from lbc.types import Batch, EnvironmentSpec

SHARED = "/dev/shm"  # where the memory lies on Linux; elsewhere in files
ROOM = 256_000_000  # bytes; with `atari` 160 million are needed
LEAVE_SECONDS = 5.0  # whoever is not gone by then is killed
_TASK = struct.Struct("d q")  # progress, updates so far
_TENSORS = [f.name for f in fields(Batch) if f.name not in ("burn_in", "age")]
_USERS = f"{UserError.__name__}: "
_REPLACED = (
    "a part of your own replaces a tensor (self.mean = ...) instead of changing it in place "
    "(self.mean.copy_(...)); change that, or set run.learner_processes=false."
)
_DONE = struct.Struct("d d")  # gradient norm, seconds at work


def has_room() -> bool:
    """Whether the system's shared memory holds weights and batches; containers often have 64 MB of it."""
    if not os.path.isdir(SHARED):
        return True
    free = shutil.disk_usage(SHARED).free
    if free < ROOM:
        warnings.warn(
            f"{SHARED} has {free / 1e6:.0f} MB left, so that learners run in threads, which is slower; "
            "in a container --shm-size=1g helps.",
            stacklevel=2,
        )
    return free >= ROOM


@dataclass(frozen=True)
class _Life:
    """What a process needs to know when it begins."""

    config: Config
    spec: EnvironmentSpec
    policy: int
    threads: int
    learned: SharedTensors
    batch: SharedTensors
    burn_in: int


class ProcessCrew(Crew):
    """A crew whose learners work elsewhere.  The processes begin with the first batch, whose shapes all
    batches have.

    Where one has died, all are replaced; a learner whose update was lost goes back to what it pushed last,
    which it may do once.
    """

    def __init__(
        self,
        learners: Sequence[Learner],
        server: ParameterServer,
        push_interval: int,
        config: Config,
        spec: EnvironmentSpec,
    ) -> None:
        super().__init__(learners, server, push_interval, threads=False)
        self._config, self._spec = config, spec
        self._context = process_context()
        self._learned = [SharedTensors.like(x.live_tensors(), self._context) for x in learners]
        for learner, shared in zip(learners, self._learned, strict=True):
            learner.live_in(shared.tensors())
        self._batch: SharedTensors | None = None
        self._place: Batch | None = None
        self._processes: list[_Process] = []
        self._working = False

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def learn(self, batch: Batch, progress: float) -> None:
        self.wait()
        if self._batch is None or self._place is None:
            self._batch = SharedTensors.like([getattr(batch, name) for name in _TENSORS], self._context)
            self._place = _batch_in(self._batch, batch.burn_in)
        if not self._processes:
            self._begin(self._batch, batch.burn_in)
        fill(self._place, batch)
        for learner, process in zip(self._learners, self._processes, strict=True):
            learner.schedule(progress)  # here, too, for reports
            process.begin(progress, learner.updates)
        self._working = True

    def _begin(self, batch: SharedTensors, burn_in: int) -> None:
        for learner, learned in zip(self._learners, self._learned, strict=True):
            index, threads = learner.policy.index, torch.get_num_threads()
            life = _Life(self._config, self._spec, index, threads, learned, batch, burn_in)
            self._processes.append(_Process(self._context, life))

    def wait(self) -> None:
        """All are awaited before any failure is told."""
        working, self._working = self._working, False
        if not working:
            return
        failures = []
        for learner, process in zip(self._learners, self._processes, strict=True):
            try:
                self._publish(learner, partial(self._finish, learner, process))
            except TrainingError as failure:
                failures.append(failure)
        if any(process.gone for process in self._processes):
            self.close()
        if failures:
            raise failures[0]

    def look(self) -> None:
        """Publishes what has been learned, unless somebody is still at work."""
        pipes = [process.pipe for process in self._processes]
        if self._working and len(wait(pipes, 0)) == len(pipes):
            self.wait()

    def _finish(self, learner: Learner, process: _Process) -> None:
        learner.gradient_norm, seconds = process.finish()
        self.busy += seconds
        learner.refuse_non_finite()
        learner.updates += learner.updates_per_batch

    def close(self) -> None:
        """Ends the processes; the next batch would begin new ones."""
        for process in self._processes:
            process.dismiss()
        deadline = time.monotonic() + LEAVE_SECONDS
        for process in self._processes:
            process.join(deadline)
        self._processes.clear()


class _Process:
    """This side of one learner's process."""

    def __init__(self, context: Any, life: _Life) -> None:
        self._policy = life.policy
        self.gone = False
        self.pipe, theirs = context.Pipe()
        name = f"lbc-learner-{life.policy}"
        self._process = context.Process(target=_work, args=(theirs, life), name=name, daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def begin(self, progress: float, updates: int) -> None:
        with contextlib.suppress(OSError):  # it is gone, which `finish` will find
            self.pipe.send_bytes(_TASK.pack(progress, updates))

    def finish(self) -> tuple[float, float]:
        """Waits for the update; its gradient's norm, and the seconds that it took."""
        try:
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.gone = True
            self._process.join(1.0)
            raise TrainingError(
                f"the learner process of policy {self._policy + 1} (pid {self.pid}) ended by itself "
                f"(exit code {self._process.exitcode}); was it killed, or out of memory?"
            ) from None
        if len(answer) != _DONE.size:
            self.gone = True
            said = answer.decode(errors="replace")
            if said.startswith(_USERS):
                raise UserError(said.splitlines()[0].removeprefix(_USERS))
            raise RuntimeError(said)
        norm, seconds = _DONE.unpack(answer)
        return norm, seconds

    def dismiss(self) -> None:
        self.pipe.close()

    def join(self, deadline: float) -> None:
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _batch_in(shared: SharedTensors, burn_in: int) -> Batch:
    tensors: dict[str, Any] = dict(zip(_TENSORS, shared.tensors(), strict=True))
    return Batch(**tensors, burn_in=burn_in, age=0.0)


def _work(pipe: Connection, life: _Life) -> None:
    """A process's life: updates its learner whenever it is told to, until its pipe ends."""
    leave_signals_to_the_parent()
    end_with_the_parent()
    torch.set_num_threads(life.threads)
    keep_freed_memory()
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so are we
        try:
            learner = build_learner(life.config, life.spec, life.policy, torch.device("cpu"))
            learner.live_in(life.learned.tensors())
            places = _places(learner)
            batch = _batch_in(life.batch, life.burn_in)
            while True:
                progress, learner.updates = _TASK.unpack(pipe.recv_bytes())
                begun, learner.gradient_norm = time.perf_counter(), math.nan
                with contextlib.suppress(TrainingError):  # the norm says it
                    learner.update(batch, progress)
                if _places(learner) != places:
                    raise UserError(_REPLACED)
                pipe.send_bytes(_DONE.pack(learner.gradient_norm, time.perf_counter() - begun))
        except (EOFError, OSError):
            raise
        except Exception as error:
            pipe.send_bytes(f"{type(error).__name__}: {error}\n{traceback.format_exc()}".encode())


def _places(learner: Learner) -> list[int]:
    """Where its tensors lie: a new one in the place of an old one would be seen by nobody else."""
    return [x.data_ptr() for x in learner.live_tensors()]
