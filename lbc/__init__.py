"""Learnable Behavior Control: a population of policies, one behavior, and bandits that choose it."""

from __future__ import annotations

__version__ = "0.1.0"
