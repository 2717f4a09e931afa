"""Plain values and plain text: what any language can read back in ten years, and any terminal can show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """``value`` with arrays, tensors and tuples as lists, and NaN or infinity as ``None``.

    JSON has no NaN; Python would write one that other readers refuse.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy and torch, scalars and arrays, on any device
        return plain(value.tolist())
    return str(value)


def printable(text: str) -> str:
    """A name comes from a disk; what would move a cursor or cannot be encoded becomes a question mark."""
    return "".join(c if c.isprintable() else "?" for c in text)
