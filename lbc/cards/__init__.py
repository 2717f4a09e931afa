"""Cards: small TOML files that each change a few values of the configuration.

A *preset* is a whole experiment (``minatar``), an *overlay* is one change that fits any preset
(``random-selection``); ``minatar+random-selection`` is the first with the second laid over it.  An
experiment is then fully described by a preset, its overlays and a few ``section.key=value`` pairs::

    config = resolve("minatar+random-selection", ["learner.learning_rate=1e-3"], seed=3)
"""

from __future__ import annotations

from lbc.cards.resolve import resolve
from lbc.cards.shelf import Card, available
from lbc.cards.toml import from_toml, text_of, to_toml

__all__ = ["Card", "available", "from_toml", "resolve", "text_of", "to_toml"]
