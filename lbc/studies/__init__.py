"""Studies: questions that several runs answer together, each with its figure and its table.

A study is a small file with a function that returns its variants::

    python -m lbc.studies ladder --seeds 3 --figure docs/ladder.png

Runs that exist are kept, missing ones are done (`runner`), figure and table come from the run
directories alone (`figures`).  ``python -m lbc.studies.fixed_point`` needs no runs at all.
"""

from __future__ import annotations

from lbc.studies.figures import compare, compare_panels, table
from lbc.studies.runner import Study, Variant, execute, missing, plan

__all__ = ["Study", "Variant", "compare", "compare_panels", "execute", "missing", "plan", "table"]
