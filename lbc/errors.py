"""Errors that a user can act on: one sentence that says what is wrong and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input; the command line prints the sentence and exits with code 2."""


class TrainingError(Exception):
    """Training cannot go on (a non-finite loss, say); the command line exits with code 1."""


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"``, or nothing when no known name is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""


def missing_extra(package: str, extra: str) -> UserError:
    """The sentence for an optional dependency that is not installed."""
    return UserError(f"{package} is not installed; install it with: pip install 'lbc[{extra}]'")
