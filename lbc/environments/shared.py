"""Memory that environment processes write into and their parent reads from."""

from __future__ import annotations

import ctypes
import dataclasses
from mmap import PAGESIZE as PAGE
from typing import Any

import numpy as np

from lbc.types import EnvironmentSpec


@dataclasses.dataclass
class Arrays:
    frame: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    first: np.ndarray
    lost: np.ndarray
    action: np.ndarray


@dataclasses.dataclass(frozen=True)
class Shared:
    """The memory of one group, as it travels to a worker.

    Every array has pages of its own, so that a GPU's driver can lock them for its transfers.
    """

    size: int
    frame_shape: tuple[int, ...]
    frame_dtype: type
    memory: tuple[Any, ...]  # one raw array per field of `Arrays`

    @classmethod
    def allocate(cls, context: Any, size: int, spec: EnvironmentSpec) -> Shared:
        lengths = [
            np.dtype(kind).itemsize * int(np.prod(shape))
            for kind, shape in cls._layout(size, spec.frame_shape, spec.frame_dtype)
        ]
        return cls(
            size,
            spec.frame_shape,
            spec.frame_dtype,
            tuple(context.RawArray("b", length + 2 * PAGE) for length in lengths),
        )

    @staticmethod
    def _layout(size: int, shape: tuple[int, ...], frame: type) -> list[tuple[Any, tuple[int, ...]]]:
        row = (size,)
        return [
            (frame, (size, *shape)),
            (np.float32, row),
            (bool, row),
            (bool, row),
            (bool, row),
            (bool, row),
            (np.int64, row),
        ]

    def arrays(self, share: slice = slice(None)) -> Arrays:
        layout = self._layout(self.size, self.frame_shape, self.frame_dtype)
        return Arrays(
            *(
                np.ndarray(shape, kind, raw, offset=-ctypes.addressof(raw) % PAGE)[share]
                for raw, (kind, shape) in zip(self.memory, layout, strict=True)
            )
        )
