"""A checkpoint in a fraction of its size, for machines with little way out.

The learners' weights and moments keep bfloat16's 8 significant bits (small tensors stay as they are), and are
deflated: first the lower bytes of all numbers, then the upper ones, because exponents resemble each
other and mantissas do not.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lbc.errors import UserError
from lbc.parameters.snapshot import Json, Tensors

SHARD_BYTES = 14_900_000  # and a header: 15 MB
_SMALL = 1000  # numbers: biases and running statistics
_LEARNED = re.compile(r"run\.learners\.\d+\.(network\.|optimizer\.(exp_avg|average))")


def pack(tensors: Tensors) -> tuple[Tensors, Json]:
    """The learners' large tensors as bytes, all others as they are; and the shapes, for `unpack`."""
    large = [
        name
        for name, tensor in tensors.items()
        if _LEARNED.match(name) and tensor.dtype == torch.float32 and tensor.numel() >= _SMALL
    ]
    shapes = {name: list(tensors[name].shape) for name in large}
    return tensors | {name: _deflated(tensors[name]) for name in large}, shapes


def unpack(tensors: Tensors, shapes: Mapping[str, Any]) -> Tensors:
    """float32 again, exactly what was packed of it."""
    return tensors | {
        name: _inflated(tensors[name], [int(n) for n in shape]) for name, shape in shapes.items()
    }


def _deflated(tensor: Tensor) -> Tensor:
    halves = tensor.to(torch.bfloat16).flatten().view(torch.uint8).view(-1, 2)  # little endian
    data = zlib.compress(halves.T.contiguous().numpy().tobytes(), 1)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _inflated(data: Tensor, shape: list[int]) -> Tensor:
    count = math.prod(shape)
    if not 0 < count <= 1100 * data.numel():  # nothing can be deflated any further
        raise UserError("a packed tensor has an absurd size")
    try:
        raw = zlib.decompressobj().decompress(data.numpy().tobytes(), 2 * count)
    except zlib.error:
        raise UserError("a packed tensor cannot be read") from None
    if len(raw) != 2 * count:
        raise UserError("a packed tensor has the wrong size")
    halves = np.frombuffer(raw, np.uint8).reshape(2, count).T.copy()
    return torch.from_numpy(halves).view(torch.bfloat16).view(shape).float()
