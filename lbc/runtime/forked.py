"""What the server has that a CPU run's processes are forked from: torch and all else, once for all of them.

Nothing imports it but that server.  What lies in memory by then is left out of garbage collections, which
would write to it, so that every process would get a copy of its own.
"""

from __future__ import annotations

import gc

import lbc.runtime.learner_processes  # noqa: F401

gc.collect()
gc.freeze()
