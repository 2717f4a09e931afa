"""A mind's thought as one CUDA graph, on a stream of high priority."""

from __future__ import annotations

import contextlib

import numpy as np
import torch
from torch import Tensor

from lbc.actor.mind import Mind, Thought
from lbc.environments.shared import PAGE
from lbc.models.network import Outputs
from lbc.types import Row

WARM_UP = 3


class GraphedMind(Mind):
    """As `Mind`, on CUDA: frames go straight from the memory that environment processes write into, one
    launch does everything, every policy on a branch of its own, and one small copy brings the actions back.
    """

    _graph: torch.cuda.CUDAGraph | None = None
    _pinned: int | None = None  # address of the frames, if they are page-locked

    @torch.inference_mode()
    def think(self, frame: np.ndarray, numbers: np.ndarray) -> Thought:
        if self._graph is None:
            self._prepare(frame, numbers)
        assert self._graph is not None
        self._stream.wait_stream(torch.cuda.current_stream())  # weights may just have arrived
        with torch.cuda.stream(self._stream):
            self._give(frame, numbers)
            self._graph.replay()
            self._heard.copy_(self._said, non_blocking=True)
            self._done.record()
        self._done.synchronize()
        torch.cuda.current_stream().wait_stream(self._stream)
        return self._told(self._row, self._before, self._heard.numpy().copy())

    def _give(self, frame: np.ndarray, numbers: np.ndarray) -> None:
        self._numbers_host.copy_(torch.from_numpy(numbers))
        self._frame.copy_(torch.from_numpy(frame), non_blocking=True)
        self._numbers.copy_(self._numbers_host, non_blocking=True)

    def _prepare(self, frame: np.ndarray, numbers: np.ndarray) -> None:
        """Captures one thought; memory and generator are left as they were."""
        self._pinned = pin(frame)
        self._stream = torch.cuda.Stream(priority=-1)
        self._branches = [torch.cuda.Stream(priority=-1) for _ in self.networks]
        self._done = torch.cuda.Event(blocking=True)  # waits without a busy core: games need it
        self._frame = torch.empty(frame.shape, dtype=self._frames.dtype, device=self._device)
        self._numbers_host = torch.empty(numbers.shape, dtype=self._dtype, pin_memory=True)
        self._numbers = self._numbers_host.to(self._device)
        memory = (self._frames, self._since_first, self._state, self._action)
        kept = [x.clone() for x in memory]
        generator = self._generator.get_state()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._give(frame, numbers)
            for _ in range(WARM_UP):
                self._think(self._frame, self._numbers)
        torch.cuda.current_stream().wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph, stream=self._stream):
            self._row, self._before, self._said = self._think(self._frame, self._numbers)
        self._heard = torch.empty(self._said.shape, dtype=self._said.dtype, pin_memory=True)
        for own, old in zip(memory, kept, strict=True):
            own.copy_(old)
        self._generator.set_state(generator)
        torch.cuda.synchronize()
        self._graph = graph

    def keep(self, which: np.ndarray) -> None:
        """The graph speaks of the memory as it was; the next thought captures another."""
        self.close()
        self._graph = None
        super().keep(which)

    def close(self) -> None:
        if self._pinned is not None:
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaHostUnregister(self._pinned)
            self._pinned = None

    def _opinions(self, first: Tensor, reward: Tensor) -> list[Outputs]:
        """Each on a branch, where the policies' small kernels overlap.  Each stacks and centres what it sees,
        which is one kernel where there is `pixels`."""
        out = []
        for i, branch in enumerate(self._branches):
            branch.wait_stream(self._stream)
            with torch.cuda.stream(branch):
                out.append(self._opinion(i, self.seen, first, reward))
        for branch in self._branches:
            self._stream.wait_stream(branch)
        return out

    _row: Row
    _before: Tensor
    _said: Tensor
    _heard: Tensor


def pin(array: np.ndarray) -> int | None:
    """Page-locks memory that begins a page, as environment processes share it: the device reads it by itself.

    Its address, for whoever unlocks it, which must happen before the memory is given back: later memory
    at the same place would be taken for locked.  Where the driver refuses, transfers go through its own
    buffer and are only slower.
    """
    address = array.ctypes.data
    if address % PAGE:
        return None
    if int(torch.cuda.cudart().cudaHostRegister(address, -(-array.nbytes // PAGE) * PAGE, 0)) == 0:
        return address
    with contextlib.suppress(RuntimeError):  # the refusal would be raised by whatever is called next
        torch.zeros(1, device="cuda").item()
    return None
