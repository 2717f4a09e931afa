"""The learners at work: one batch for all of them, at once or one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from lbc.errors import TrainingError
from lbc.learner import Learner
from lbc.learner.graphed import GraphedUpdate, fill, standing
from lbc.parameters import ParameterServer
from lbc.types import Batch


class Crew:
    """::

    crew.learn(batch, progress)     # waits for the batch before this one, then returns at once
    crew.wait()                     # until every learner has finished; raises what went wrong

    Without threads `learn` returns when all is done.  At most one batch is in flight, which bounds the
    policies' lag: whoever acts faster than the crew learns has to wait for it.
    """

    def __init__(
        self, learners: Sequence[Learner], server: ParameterServer, push_interval: int, threads: bool
    ) -> None:
        self._learners = learners
        self._server = server
        self._push_interval = push_interval
        self._pool = ThreadPoolExecutor(len(learners), "learner") if threads else None
        self._in_flight: list[Future[None]] = []
        self._lock = threading.Lock()
        self.busy = 0.0  # seconds that learners have worked, all together

    def learn(self, batch: Batch, progress: float) -> None:
        self.wait()
        if self._pool is None:
            for learner in self._learners:
                self._update(learner, batch, progress)
        else:
            submit = self._pool.submit
            self._in_flight = [submit(self._update, learner, batch, progress) for learner in self._learners]

    def _update(self, learner: Learner, batch: Batch, progress: float) -> None:
        begun = time.perf_counter()
        learner.update(batch, progress)
        if learner.updates % self._push_interval == 0:
            self._server.push(learner.policy.index, learner.network, learner.updates)
        with self._lock:
            self.busy += time.perf_counter() - begun

    def wait(self) -> None:
        landed, self._in_flight = self._in_flight, []
        failures = [failure for failure in (future.exception() for future in landed) if failure is not None]
        if failures:
            raise failures[0]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class GraphedCrew(Crew):
    """On CUDA: every update is a graph on a stream of its own, launched from here; no threads are needed."""

    def __init__(self, learners: Sequence[Learner], server: ParameterServer, push_interval: int) -> None:
        super().__init__(learners, server, push_interval, threads=False)
        self._place: Batch | None = None
        self._updates: list[GraphedUpdate] = []
        self._working = False

    def learn(self, batch: Batch, progress: float) -> None:
        self.wait()
        if self._place is None:
            self._place = standing(batch)
            self._updates = [GraphedUpdate(learner, self._place) for learner in self._learners]
        fill(self._place, batch)
        for update in self._updates:
            update.launch(progress)
        self._working = True

    def wait(self) -> None:
        if not self._working:
            return
        self._working = False
        try:
            for update in self._updates:
                update.finish()
        except TrainingError:
            for learner in self._learners:  # a graph cannot stop halfway: back to what was pushed last
                learner.network.load_state_dict(self._server.weights(learner.policy.index))
            raise
        for learner in self._learners:
            if learner.updates % self._push_interval == 0:
                self._server.push(learner.policy.index, learner.network, learner.updates)
