"""Whole episodes with psi given: one of each copy counts, and nobody thinks about what has ended for long."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lbc.actor import evaluation, play_episodes
from lbc.actor.mind import Mind
from lbc.behavior import TargetPolicy
from lbc.environments import Apart
from lbc.interfaces import VectorEnvironment
from tests.actor.scripted import Scripted
from tests.actor.test_actor import MAPPING, POPULATION, networks

COPIES = 24
LENGTHS = 3 + np.arange(COPIES)  # of the scripted episodes


def played(environment: VectorEnvironment, psi: np.ndarray) -> evaluation.Played:
    parts = (networks(environment.spec), POPULATION, MAPPING, TargetPolicy(1.0, None))
    return play_episodes(environment, *parts, psi, 0, torch.device("cpu"), torch.float64)


def behaviors(sharpness: float) -> np.ndarray:
    """One policy alone for every copy, in turns: a mixture would leave something to chance."""
    omega = np.eye(3)[np.arange(COPIES) % 3]
    return np.concatenate([np.full((COPIES, 3), sharpness), omega], axis=1)


def test_the_first_episode_of_every_copy_counts():
    scores, steps = played(Scripted(COPIES, frame_stack=12), behaviors(1.0))
    assert steps.tolist() == LENGTHS.tolist()
    assert scores.tolist() == [sum(range(length + 1)) for length in LENGTHS]  # the n-th step is worth n


@pytest.mark.parametrize("few", [0.3, 0.5, 0.99])
def test_copies_that_still_play_do_not_notice_who_was_let_go(few, monkeypatch):
    """Frame stacks, recurrent states, last actions and psi stay with their copy."""
    thought_about = []

    def think(mind, frame, numbers, plain=Mind.think):
        thought_about.append(len(frame))
        return plain(mind, frame, numbers)

    monkeypatch.setattr(Mind, "think", think)
    games = {}
    for share in (0.0, few):  # with 0 nobody is let go
        monkeypatch.setattr(evaluation, "FEW", share)
        games[share] = Scripted(COPIES, frame_stack=12)
        thought_about.clear()
        played(games[share], behaviors(1e4))  # nearly greedy: no chance is left
        assert (min(thought_about) < COPIES) == (share > 0) and thought_about[0] == COPIES
    acted = False
    for t, (every, some) in enumerate(zip(games[0.0].actions, games[few].actions, strict=True)):
        playing = t < LENGTHS
        assert (every[playing] == some[playing]).all(), t
        acted |= len(set(every[playing])) > 1
    assert acted, "actions differ between copies, or the comparison says nothing"


def test_copies_that_can_be_stepped_apart_are_not_played_beyond_their_episode(monkeypatch):
    monkeypatch.setattr(evaluation, "FEW", 0.99)
    singles = [Scripted(1, frame_stack=12, shortest=length) for length in LENGTHS]
    scores, steps = played(Apart(iter(singles).__next__, COPIES, at_once=2), behaviors(1.0))
    assert steps.tolist() == LENGTHS.tolist()
    assert scores.tolist() == [sum(range(length + 1)) for length in LENGTHS]
    assert [len(one.actions) for one in singles] == (LENGTHS + 1).tolist()  # the end is seen one step later


def test_whoever_listens_hears_how_many_have_ended():
    heard = []
    parts = (networks((game := Scripted(4)).spec), POPULATION, MAPPING, TargetPolicy(1.0, None))
    play_episodes(
        game, *parts, behaviors(1.0)[:4], 0, torch.device("cpu"), torch.float64, lambda *n: heard.append(n)
    )
    assert heard == [(0, 4)] * 3 + [(1, 4), (2, 4), (3, 4), (4, 4)]
