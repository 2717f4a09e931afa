"""Checks that every record uses; each failure is one sentence that names the value."""

from __future__ import annotations

import math

from lbc.errors import UserError, nearest


def require(condition: bool, sentence: str) -> None:
    if not condition:
        raise UserError(sentence)


def one_of(section: str, key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(
            f"{section}.{key} is '{value}', but must be one of {', '.join(known)}.{nearest(value, known)}"
        )


def at_least(section: str, key: str, value: float, bound: float) -> None:
    require(
        value >= bound and math.isfinite(value),
        f"{section}.{key} is {value}, but must be at least {bound}, and finite.",
    )


def positive(section: str, key: str, value: float) -> None:
    require(value > 0 and math.isfinite(value), f"{section}.{key} is {value}, but must be positive.")


def within(section: str, key: str, value: float, low: float, high: float) -> None:
    require(low <= value <= high, f"{section}.{key} is {value}, but must lie in [{low}, {high}].")
