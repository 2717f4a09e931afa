"""The recursion behind V-trace and Retrace, in few operations."""

from __future__ import annotations

import torch
from torch import Tensor


def sums_from_behind(a: Tensor, b: Tensor) -> Tensor:
    """x_t = a_t + b_t x_{t+1}, and 0 behind the last: [T, ...].

    In rounds that double how far each x_t has looked ahead, log2 T of them, where step by step it would be T:
    on a GPU it is their number that costs time.
    """
    x, reach = a, 1
    while reach < len(a):
        x = torch.cat([torch.addcmul(x[:-reach], b[: len(a) - reach], x[reach:]), x[-reach:]])
        b = b[:-reach] * b[reach:]  # from t to t + 2 reach; nobody looks beyond the end
        reach *= 2
    return x
