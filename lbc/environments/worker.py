"""One process that plays: its parent's end, and its life.

Words ("step group 1", "done") go through a pipe, frames through shared memory.  A pipe is also how death is
noticed: a worker whose parent is gone reads the end of its pipe and ends.  A worker that is gone, or has not
answered for too long, is replaced: its copies begin new episodes, which shows as `first` rows without an end
before them, and play goes on.  One that fails again and again ends the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import struct
import sys
import time
import traceback
import warnings
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from lbc.config import EnvironmentConfig
from lbc.environments import make
from lbc.environments.processes import leave_signals_to_the_parent
from lbc.environments.shared import Arrays, Shared
from lbc.errors import TrainingError
from lbc.interfaces import VectorEnvironment

SLICE_SECONDS = 0.5  # of waiting; one that the process was stopped in counts as no more than that
FAILURES = 3  # of one worker in a row are mended, each without so many steps before it:
HEALTHY_STEPS = 20
START_SECONDS = 600.0  # building hundreds of emulators takes time
RESET, STEP, SPIN, CLOSE = b"reset", b"step", b"spin", b"close"
WORD = struct.Struct("5s i q")  # what, group, and a number: the seed, or how many steps
_DONE, _FAILED = b"\x01", b"\x00"


class Worker:
    """The parent's end of one process."""

    def __init__(
        self,
        context: Any,
        number: int,
        config: EnvironmentConfig,
        share: slice,
        memory: list[Shared],
        stagger_steps: int,
    ) -> None:
        self._number = number
        self._context = context
        self._life = (config, share, memory, stagger_steps)
        self.failures = 0
        self._in_a_row = 0
        self._steps = 0  # since the process was started
        self._answered: set[int] = set()  # groups whose rows are ready, though nobody has asked for them yet
        self._begins_anew = [False] * len(memory)  # groups whose next rows are those of new episodes
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        name = f"lbc-environments-{self._number}"
        self._process = self._context.Process(
            target=_work, args=(theirs, *self._life), name=name, daemon=True
        )
        self._process.start()
        theirs.close()
        self._building = True

    def built(self) -> None:
        """Waits until the process has its copies."""
        if self._building:
            self.hear(START_SECONDS)
            self._building = False

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def tell(self, group: int, word: bytes) -> None:
        if self._begins_anew[group]:
            return  # the action was meant for an episode that is lost
        try:
            self._pipe.send_bytes(word)
        except (BrokenPipeError, ConnectionResetError):
            self._replace(self._gone())

    def answer(self, group: int, seconds: float) -> None:
        """Waits until this worker's share of the group's rows lies in the shared memory."""
        if not self._begins_anew[group]:
            try:
                while group not in self._answered:  # groups answer in the order in which they were told
                    self._answered.add(self.hear(seconds))
                self._answered.remove(group)
                self._steps += 1
            except TrainingError as failure:
                self._replace(failure)
        self._begins_anew[group] = False

    def _replace(self, failure: TrainingError) -> None:
        """A new process for the same copies; all their groups begin new episodes."""
        self.failures += 1
        self._in_a_row = 1 if self._steps >= HEALTHY_STEPS else self._in_a_row + 1
        self._steps = 0
        if self._in_a_row > FAILURES:
            raise TrainingError(f"{failure} It has failed {self._in_a_row} times in a row, so the run ends.")
        warnings.warn(f"{failure} It is replaced; its unfinished episodes are lost.", stacklevel=2)
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._answered.clear()
        self._start()
        self.built()
        seed = 1_000_003 * self.failures + int(1e3 * time.monotonic())
        for group in range(len(self._begins_anew)):
            self._pipe.send_bytes(WORD.pack(RESET, group, seed % 2**30))
            self.hear(START_SECONDS)
            self._begins_anew[group] = True

    def hear(self, seconds: float) -> int:
        """Waits for the answer to the oldest word that has none yet; returns the group that it is about."""
        try:
            if not self._speaks_within(seconds):
                raise TrainingError(
                    f"environment process {self._number} (pid {self.pid}) has not answered for "
                    f"{seconds:.1f} seconds; the game hangs, or the machine is far too busy."
                )
            answer = self._pipe.recv_bytes()
        except (EOFError, ConnectionResetError):
            raise self._gone() from None
        if answer[:1] != _DONE:
            raise TrainingError(
                f"environment process {self._number} failed:\n{answer[1:].decode(errors='replace')}"
            )
        return int.from_bytes(answer[1:], "little")

    def _speaks_within(self, seconds: float) -> bool:
        """Of time that was ours: whoever stops this process (Ctrl-Z) mostly stops its workers, too."""
        slices = max(1, round(seconds / SLICE_SECONDS))
        return any(self._pipe.poll(seconds / slices) for _ in range(slices))

    def _gone(self) -> TrainingError:
        self._process.join(1.0)
        return TrainingError(
            f"environment process {self._number} (pid {self.pid}) ended by itself "
            f"(exit code {self._process.exitcode}); was it killed, or out of memory?"
        )

    def dismiss(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send_bytes(WORD.pack(CLOSE, 0, 0))
            self._pipe.close()

    def join(self, deadline: float) -> None:
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(
    pipe: Connection, config: EnvironmentConfig, share: slice, memory: list[Shared], stagger_steps: int
) -> None:
    """A worker's life: builds its copies, then does what it is told until its pipe ends."""
    leave_signals_to_the_parent()
    os.environ["OMP_NUM_THREADS"] = "1"
    if torch := sys.modules.get("torch"):  # too late for the variable, where a game of a user's uses it
        torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so are we
        try:
            arrays = [shared.arrays(share) for shared in memory]
            copies = share.stop - share.start
            one_thread = dataclasses.replace(config, threads=1)
            games = [make(one_thread, copies, stagger_steps) for _ in memory]
            pipe.send_bytes(_DONE)
            while (group := _obey(pipe, games, arrays, share.start)) is not None:
                pipe.send_bytes(_DONE + group.to_bytes(4, "little"))
        except (EOFError, OSError):
            raise
        except Exception:
            pipe.send_bytes(_FAILED + traceback.format_exc(limit=-6).encode())
            time.sleep(0.5)  # for the words to be read before the end of the pipe


def _obey(
    pipe: Connection, games: list[VectorEnvironment], arrays: list[Arrays], first_env: int
) -> int | None:
    """Does what the next word says; returns the group that it is about, None if it is the last."""
    word, group, number = WORD.unpack(pipe.recv_bytes())
    what = word.rstrip(b"\0")
    if what == CLOSE:
        return None
    game, mine = games[group], arrays[group]
    if what == SPIN:
        rng = np.random.default_rng(first_env)
        for _ in range(number):
            game.step(rng.integers(0, game.spec.num_actions, game.num_envs))
        return int(group)
    seen = game.reset(number + first_env) if what == RESET else game.step(mine.action)
    mine.frame[...] = seen.frame
    mine.reward[...] = seen.reward
    mine.terminated[...] = seen.terminated
    mine.truncated[...] = seen.truncated
    mine.first[...] = seen.first
    mine.lost[...] = seen.lost
    return int(group)
