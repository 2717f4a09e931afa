"""Studies: questions that several runs answer together, each with figures, numbers and findings.

A study is a small file with a function that returns its variants (`plan`)::

    lbc study ladder --seeds 3 --figure docs/ladder.png

Runs that exist are kept, interrupted ones go on, missing ones are done (`runner`); everything else comes from
the run directories alone (`presentation`).  ``python -m lbc.studies.fixed_point`` needs no runs at all.
"""

from __future__ import annotations

from lbc.studies.conduct import conduct, show
from lbc.studies.figures import compare, compare_panels, table
from lbc.studies.plan import Study, Variant, missing, plan
from lbc.studies.runner import execute

__all__ = [
    "Study",
    "Variant",
    "compare",
    "compare_panels",
    "conduct",
    "execute",
    "missing",
    "plan",
    "show",
    "table",
]
