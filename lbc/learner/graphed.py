"""All updates that come of a batch as one CUDA graph: thousands of small launches become one.

The batch lives in tensors that never move; a graph reads them, writes gradients, weights, moments and
running statistics in place, and leaves the gradient's norm behind.  Learning rate, weight decay, entropy
bonus and discount are tensors that the host fills before each replay.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from lbc.learner.learner import Learner
from lbc.types import Batch

WARM_UP = 3  # updates outside the graph, so that libraries choose their kernels and workspaces


def standing(batch: Batch) -> Batch:
    """A copy whose tensors may be captured."""
    values: dict[str, Any] = {f.name: getattr(batch, f.name) for f in fields(batch)}
    copies: dict[str, Any] = {k: x.clone() if isinstance(x, Tensor) else x for k, x in values.items()}
    return Batch(**copies)


def fill(place: Batch, batch: Batch) -> None:
    """Copies every tensor of `batch` into `place`; shapes must agree."""
    for f in fields(batch):
        x = getattr(batch, f.name)
        if isinstance(x, Tensor):
            getattr(place, f.name).copy_(x, non_blocking=True)


class GraphedUpdate:
    """::

    update = GraphedUpdate(learner, place)      # captures; the learner is left as it was
    fill(place, batch); update.launch(progress)  # returns at once
    update.finish()                             # waits; raises if the gradient was not finite
    """

    def __init__(self, learner: Learner, place: Batch) -> None:
        self.learner = learner
        self._place = place
        self._stream = torch.cuda.Stream()
        self._norm = torch.zeros((), device=place.reward.device)
        self._heard = torch.zeros((), pin_memory=True)
        self._begun = torch.cuda.Event(enable_timing=True)
        self._done = torch.cuda.Event(enable_timing=True, blocking=True)
        self._centring = learner.still_centring
        self._graph = self._capture()

    def _capture(self) -> torch.cuda.CUDAGraph:
        learner = self.learner
        weights = copy.deepcopy(learner.network.state_dict())
        moments = learner.optimizer_state()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UP):
                self._once()
        torch.cuda.current_stream().wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._once()
        learner.network.load_state_dict(weights)
        learner.restore_optimizer(moments)
        return graph

    def _once(self) -> None:
        norms = []
        for part in self.learner.minibatches(self._place):
            seen, _, norm = self.learner.differentiate(part)
            self.learner.apply(seen, part, self._centring)
            norms.append(norm)
        self._norm.copy_(torch.stack(norms).mean())

    def launch(self, progress: float) -> None:
        if self._centring and not self.learner.still_centring:
            self._centring = False
            self._graph = self._capture()  # without following the observations' mean
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._begun.record()
            self.learner.schedule(progress)
            self._graph.replay()
            self._heard.copy_(self._norm, non_blocking=True)
            self._done.record()
        self.learner.updates += self.learner.updates_per_batch

    @property
    def seconds(self) -> float:
        """How long the device was at it, once it has finished."""
        return self._begun.elapsed_time(self._done) / 1000.0

    def finish(self) -> None:
        self._done.synchronize()
        self.learner.gradient_norm = float(self._heard)
        self.learner.refuse_non_finite()
