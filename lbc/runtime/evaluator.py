"""The evaluator: a process of its own that plays the newest policies while training goes on.

It plays in rounds.  A round takes the weights and the controller's favourite psi as they are when it
begins, plays some episodes in every way (the favourite; each component alone) and reports the mean
scores with the frame count that the weights belong to.  It has the lowest priority and one thread:
training does not wait for it, not even until it has read the weights.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from lbc.actor import play_episodes, ways_to_play
from lbc.behavior import build_mapping, build_population, build_target
from lbc.config import Config
from lbc.environments import make_apart
from lbc.environments.processes import end_with_the_parent, leave_signals_to_the_parent, process_context
from lbc.models import PolicyNetwork
from lbc.runtime.device import precision
from lbc.runtime.experiment import Experiment

Weights = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class _Round:
    frames: int
    seed: int
    favourite: np.ndarray
    weights: list[Weights]


class Evaluator:
    """::

    evaluator.offer(experiment, frames)     # often: begins a round if none is going on
    evaluator.latest                        # what the last finished round found, for the metrics
    """

    def __init__(self, config: Config) -> None:
        self.latest: dict[str, Any] = {}
        self._rounds = 0
        self._idle = False  # until it says that it is ready
        self._sending: threading.Thread | None = None
        context = process_context()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_evaluate, args=(theirs, config), name="lbc-evaluator", daemon=True
        )
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    def offer(self, experiment: Experiment, frames: int) -> None:
        if not self._listen() or not self._idle:
            return
        weights = [
            {name: tensor.detach().cpu().numpy().copy() for name, tensor in learner.to_play().items()}
            for learner in experiment.learners
        ]
        seed = (experiment.config.run.seed + 1_000_003 * (self._rounds + 1)) % 2**30
        favourite = experiment.controller.favourite()
        self._idle = False
        self._rounds += 1
        work = _Round(frames, seed, favourite, weights)
        self._sending = threading.Thread(
            target=self._send, args=(work,), name="evaluator-weights", daemon=True
        )
        self._sending.start()

    def _send(self, work: _Round) -> None:
        """In a thread: many megabytes go through the pipe, at the pace of the process that reads them."""
        with contextlib.suppress(OSError):  # it is gone, which `_listen` will find
            self._pipe.send(work)

    def _listen(self) -> bool:
        """Reads what has arrived; False once the process is gone (training goes on without it)."""
        try:
            while self._pipe.poll():
                self.latest = self._pipe.recv() or self.latest
                self._idle = True
        except (EOFError, OSError):
            self.latest = {"eval_score": None, "eval_error": "the evaluation process has ended"}
            return False
        return True

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        if self._sending is not None:
            self._sending.join()  # nobody reads any more, so it has ended
        self._pipe.close()


def _evaluate(pipe: Connection, config: Config) -> None:
    """The process: waits for a round, plays it, reports it, until its pipe ends."""
    leave_signals_to_the_parent()
    end_with_the_parent()
    with contextlib.suppress(OSError):
        os.nice(19)
    torch.set_num_threads(1)
    device = torch.device("cpu")
    dtype, _ = precision(config, device)
    population = build_population(config.population)
    mapping = build_mapping(config.behavior, len(population))
    target = build_target(config.target, mapping, len(population))
    components, episodes = len(mapping.components), config.run.evaluation_episodes
    one_thread = dataclasses.replace(config.environment, threads=1)
    environment = make_apart(one_thread, episodes * (components + 1))
    spec = environment.spec
    networks = [PolicyNetwork(spec, config.model, config.target).to(device, dtype) for _ in population]
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so are we
        pipe.send(None)
        while True:
            work: _Round = pipe.recv()
            for network, weights in zip(networks, work.weights, strict=True):
                network.load_state_dict({name: torch.from_numpy(x) for name, x in weights.items()})
            ways = ways_to_play(work.favourite, components, config.target.kappa)
            psi = np.repeat(np.stack(list(ways.values())), episodes, axis=0)
            scores, _ = play_episodes(
                environment, networks, population, mapping, target, psi, work.seed, device, dtype
            )
            by_way = dict(zip(ways, scores.reshape(len(ways), episodes), strict=True))
            pipe.send(
                {
                    "eval_score": float(by_way["favourite"].mean()),
                    "eval_max": float(by_way["favourite"].max()),
                    "eval_scores": {way: float(found.mean()) for way, found in by_way.items()},
                    "eval_episodes": episodes,
                    "eval_frames": work.frames,
                    "eval_psi": work.favourite.tolist(),
                }
            )
