"""Pages about runs, for a browser: a report in one file, and what is known to go wrong."""

from __future__ import annotations

from lbc.pages.diagnostics import Finding, diagnose

__all__ = ["Finding", "diagnose"]
