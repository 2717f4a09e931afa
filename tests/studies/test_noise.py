"""Noise alone must not make a policy sure of itself; around which centre of a trust region it does is known."""

from __future__ import annotations

import math

from lbc.cards import resolve
from lbc.studies import noise


def _after(rule: noise.Rule, updates: int = 150) -> float:
    behavior = resolve("atari-fast+decoupled").behavior
    return noise.entropies(rule, behavior, policies=3, actions=18, updates=updates, seed=0)[-1]


def test_a_region_around_ones_own_past_adds_nothing():
    assert _after(noise.Rule("policy")) > 0.98 * math.log(18)


def test_a_region_around_a_sharper_behavior_sharpens():
    assert _after(noise.Rule("behavior")) < 2.0
    assert _after(noise.Rule("behavior", kappa=2.19)) > 2.4, "as sharp as the behavior is on average"


def test_the_table(capsys):
    assert noise.main(["--updates", "100", "--seeds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].count("|") == lines[1].count("|") == lines[-1].count("|") == 5
    assert lines[-1].startswith("| behavior | 2.19 | 2.89 |")
