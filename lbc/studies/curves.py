"""Curves of several seeds; they live in ``lbc.reporting.curves``, where scores read them, too."""

from __future__ import annotations

from lbc.reporting.curves import (
    FEW,
    FINAL_SHARE,
    Band,
    Curve,
    band,
    interval,
    interval_name,
    load,
    load_all,
    smoothed,
)

__all__ = [
    "FEW",
    "FINAL_SHARE",
    "Band",
    "Curve",
    "band",
    "interval",
    "interval_name",
    "load",
    "load_all",
    "smoothed",
]
