"""Tensors that several processes see."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_ALIGNED = 64  # bytes: a cache line


@dataclass(frozen=True)
class SharedTensors:
    """Places for tensors, as they travel to a new process; the memory has no name in the file system.

    ::

        shared = SharedTensors.like(tensors, context)   # here; holds the same values
        mine = shared.tensors()                         # here and in the other process: the same memory
    """

    memory: Any  # one raw array
    layout: tuple[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]], ...]  # type, size, stride of each

    @classmethod
    def like(cls, tensors: Sequence[Tensor], context: Any) -> SharedTensors:
        without_gaps = map(torch.empty_like, tensors)
        layout = tuple((x.dtype, tuple(x.shape), tuple(x.stride())) for x in without_gaps)
        shared = cls(context.RawArray("b", _ends(layout)[-1] + _ALIGNED), layout)
        with torch.no_grad():
            for place, x in zip(shared.tensors(), tensors, strict=True):
                place.copy_(x)
        return shared

    def tensors(self) -> list[Tensor]:
        offset = -ctypes.addressof(self.memory) % _ALIGNED
        everything = torch.frombuffer(self.memory, dtype=torch.uint8, offset=offset)
        places = []
        for (kind, size, stride), begin in zip(self.layout, _ends(self.layout), strict=False):
            piece = everything[begin : begin + kind.itemsize * math.prod(size)].view(kind)
            places.append(piece.as_strided(size, stride))
        return places


def _ends(layout: Sequence[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]]) -> list[int]:
    """Where each tensor begins, and where the last one ends."""
    ends = [0]
    for kind, size, _ in layout:
        ends.append(ends[-1] + math.ceil(kind.itemsize * math.prod(size) / _ALIGNED) * _ALIGNED)
    return ends
