"""The learners at work: one batch for all of them, at once or one after the other."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from lbc.environments.cores import usable_cores
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

    A learner that meets a non-finite gradient goes back to the weights that it pushed last, since they came
    out of a finite update and are those that act.  It may do so once; the second time ends the run.
    """

    def __init__(
        self, learners: Sequence[Learner], server: ParameterServer, push_interval: int, threads: bool
    ) -> None:
        self._learners = learners
        self._server = server
        self._push_interval = push_interval
        self._pool = ThreadPoolExecutor(len(learners), "learner") if threads else None
        if threads:  # as many pieces of batches at once as there are cores: more would only hold more memory
            turn = threading.Semaphore(usable_cores())
            for learner in learners:
                learner.turn = turn
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
        self._publish(learner, lambda: learner.update(batch, progress))
        with self._lock:
            self.busy += time.perf_counter() - begun

    def _publish(self, learner: Learner, update: Callable[[], object]) -> None:
        """Pushes what came of an update, if it is time; goes back if nothing good did."""
        index = learner.policy.index
        try:
            update()
        except TrainingError as failure:
            learner.go_back(self._server.weights(index))
            if learner.setbacks > 1:
                raise TrainingError(f"{failure} What the batch held is in failed_batch.json.") from failure
            warnings.warn(
                f"{failure} It goes back to update {self._server.version(index)}; next time the run ends.",
                stacklevel=2,
            )
        else:
            if learner.updates % self._push_interval < learner.updates_per_batch:  # it was due among them
                self._server.push(index, learner.network, learner.updates)

    def look(self) -> None:
        """Publishes what has been learned meanwhile, without waiting; threads do it by themselves."""

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
        """All are awaited before any failure is told.  A graph cannot stop halfway: a failed update has
        spoiled weights, moments and statistics, and going back mends all of them."""
        working, self._working = self._working, False
        failures = []
        for update in self._updates if working else ():
            try:
                self._publish(update.learner, update.finish)
            except TrainingError as failure:
                failures.append(failure)
            self.busy += update.seconds
        if failures:
            raise failures[0]
