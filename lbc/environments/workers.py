"""Environments in processes of their own, over shared memory, in groups that take turns.

    pool = WorkerPool(config, num_envs=512, workers=16, groups=2)
    a, b = pool.groups                       # each a VectorEnvironment of 256 copies
    a.send(actions); b.send(actions)
    a.recv()                                 # b plays while somebody thinks about a

Every worker plays a share of every group, one after the other, so its core never waits while any
group has actions.  The memory through which frames travel has no name in the file system, so nothing of it
is left behind, whoever dies.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import numpy as np

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.environments.cores import usable_cores
from lbc.environments.processes import preload, process_context
from lbc.environments.shared import Shared
from lbc.environments.worker import RESET, SPIN, START_SECONDS, STEP, WORD, Worker
from lbc.errors import UserError
from lbc.types import EnvironmentSpec, EnvironmentStep

REPLY_SECONDS = 30.0  # a worker that says nothing for so long hangs
MANY_CORES = 8
LEAVE_SECONDS = 5.0  # whoever is not gone by then is killed


class WorkerPool:
    """`num_envs` copies of one game in `workers` processes, split into `groups` of equal size.

    They are built while the caller does something else; a group's `reset` waits for them.
    """

    def __init__(
        self,
        config: EnvironmentConfig,
        num_envs: int,
        workers: int = 0,
        groups: int = 2,
        stagger_steps: int = 0,
    ) -> None:
        if num_envs % groups:
            raise UserError(
                f"actor.num_envs is {num_envs}, but must be a multiple of actor.groups = {groups}."
            )
        size = num_envs // groups
        workers = min(workers or usual_workers(), size)
        probe = make(dataclasses.replace(config, threads=1), 1)  # bad input is told here, in one sentence
        self.spec: EnvironmentSpec = probe.spec
        probe.close()
        self.num_envs = num_envs
        preload(Worker.__module__)
        context = process_context()
        shares = [len(part) for part in np.array_split(np.arange(size), workers)]  # copies of each worker
        bounds = np.cumsum([0, *shares]).tolist()
        memory = [Shared.allocate(context, size, self.spec) for _ in range(groups)]
        self._workers: list[Worker] = []
        try:
            for number in range(workers):
                share = slice(bounds[number], bounds[number + 1])
                self._workers.append(Worker(context, number, config, share, memory, stagger_steps))
        except BaseException:
            self.close()
            raise
        self.groups = [
            Group(number, number * size, self.spec, shared, self._workers)
            for number, shared in enumerate(memory)
        ]

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    @property
    def failures(self) -> int:
        """How often a process had to be replaced."""
        return sum(worker.failures for worker in self._workers)

    def close(self) -> None:
        """Ends all processes; may be called twice."""
        for worker in self._workers:
            worker.dismiss()
        deadline = time.monotonic() + LEAVE_SECONDS
        for worker in self._workers:
            worker.join(deadline)
        self._workers.clear()


class Group:
    """One group of a pool as a `VectorEnvironment`; copies `first_env ..` of the pool."""

    resumable = False  # the state of the games lies in other processes

    def __init__(
        self,
        number: int,
        first_env: int,
        spec: EnvironmentSpec,
        shared: Shared,
        workers: Sequence[Worker],
    ) -> None:
        self.first_env = first_env
        self.spec = spec
        self.num_envs = shared.size
        self._number = number
        self._memory = shared.arrays()
        self._workers = workers

    def reset(self, seed: int) -> EnvironmentStep:
        for worker in self._workers:
            worker.built()
        self._tell(RESET, seed + self.first_env)
        return self._heard(START_SECONDS)  # hundreds of idle starts

    def step(self, actions: np.ndarray) -> EnvironmentStep:
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        self._memory.action[:] = actions
        self._tell(STEP)

    def recv(self) -> EnvironmentStep:
        """Waits for all workers; the frames lie in the shared memory until the next `send`."""
        return self._heard(REPLY_SECONDS)

    def _heard(self, seconds: float) -> EnvironmentStep:
        for worker in self._workers:
            worker.answer(self._number, seconds)
        m = self._memory
        small = (m.reward, m.terminated, m.truncated, m.first, m.lost)
        return EnvironmentStep(m.frame, *(x.copy() for x in small))

    def close(self) -> None:
        """The pool owns the processes."""

    def spin(self, steps: int) -> None:
        """Steps all copies with random actions and waits; nothing travels: the bare emulator."""
        self._tell(SPIN, steps)
        for worker in self._workers:
            worker.hear(START_SECONDS)  # nothing else is under way

    def _tell(self, what: bytes, number: int = 0) -> None:
        word = WORD.pack(what, self._number, number)
        for worker in self._workers:
            worker.tell(self._number, word)


def usual_workers() -> int:
    """One per usable core; where there are many, two for each but the one of whoever thinks and learns.

    All wait for the slowest.  With twice as many processes, each with half of the games, the system moves
    them between the cores, and none is the slowest for long.
    """
    cores = usable_cores()
    return 2 * (cores - 1) if cores >= MANY_CORES else cores
