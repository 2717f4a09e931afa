"""Noise alone must not make a policy sure of itself, and data by chance must be enough to learn from; around
which centre of a trust region that holds is known."""

from __future__ import annotations

import math

import pytest

from lbc.cards import resolve
from lbc.studies.trust import CHANCE, SIGNAL, Rule, Task, better, entropy, followed, main

BEHAVIOR = resolve("atari-fast").behavior
NOISE = Task(BEHAVIOR, updates=150)
BY_CHANCE = Task(BEHAVIOR, updates=300, signal=SIGNAL, tau=CHANCE)


@pytest.mark.parametrize("centre", ["policy", "population"])
def test_a_region_around_what_policies_said_adds_nothing(centre):
    assert entropy(followed(Rule(centre), NOISE, seed=0)[-1]) > 0.98 * math.log(18)


def test_a_region_around_a_sharper_behavior_sharpens():
    assert entropy(followed(Rule("behavior"), NOISE, seed=0)[-1]) < 2.0
    as_sharp = Rule("behavior", kappa=2.19)  # as the behavior is on average
    assert entropy(followed(as_sharp, NOISE, seed=0)[-1]) > 2.4


def test_a_region_around_chance_allows_nothing_but_chance():
    around_mu = better(followed(Rule("behavior"), BY_CHANCE, seed=0)[-1])
    assert 1 / 18 < around_mu < 1.35 / 18
    for centre in ("policy", "population"):
        assert better(followed(Rule(centre), BY_CHANCE, seed=0)[-1]) > 0.5


def test_the_tables(capsys):
    assert main(["--updates", "100", "--seeds", "1"]) == 0
    noise, by_chance = capsys.readouterr().out.strip().split("\n\n")[1::2]
    for table in (noise, by_chance):
        lines = table.splitlines()
        assert len(lines) == 7 and {line.count("|") for line in lines} == {5}
    assert "| behavior | 2.19 | 2.89 |" in noise and "| behavior | 2.19 | 0.06 |" in by_chance
