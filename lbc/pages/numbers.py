"""Numbers out of reports that may lack them: a report is whatever somebody wrote into metrics.jsonl."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]


def number(value: Any) -> float:
    """A finite number as such, anything else as NaN."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        found = float(value)
    except OverflowError:  # an integer beyond all floats
        return math.nan
    return found if math.isfinite(found) else math.nan


def known(values: Iterable[Any]) -> list[float]:
    """The finite numbers among `values`."""
    return [found for found in map(number, values) if not math.isnan(found)]


def column(reports: Iterable[Report], key: str) -> list[float]:
    """What is known of one key, in the order of time."""
    return known(report.get(key) for report in reports)


def records(report: Report, key: str) -> list[Report]:
    """A list of objects in a report, such as its policies."""
    found = report.get(key)
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def by_policy(reports: Sequence[Report], key: str) -> list[list[float]]:
    """One list per policy of what is known of `key`; policies that never said it are left out."""
    policies = [records(report, "policies") for report in reports]
    size = max(map(len, policies), default=0)
    found = [known(entry[i].get(key) for entry in policies if i < len(entry)) for i in range(size)]
    return [values for values in found if values]
