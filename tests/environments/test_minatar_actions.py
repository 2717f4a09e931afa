from __future__ import annotations

from lbc.config import EnvironmentConfig
from lbc.environments import make


def test_actions_have_names():
    """The third action of Breakout's smallest set is right, not up."""
    every = make(EnvironmentConfig(id="MinAtar/Breakout", full_action_space=True), 1)
    needed = make(EnvironmentConfig(id="MinAtar/Breakout", full_action_space=False), 1)
    assert every.action_names == ["noop", "left", "up", "right", "down", "fire"]
    assert needed.action_names == ["noop", "left", "right"]
