"""An update in pieces is the update of the whole batch: gradients, losses, weights, running statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lbc.config import TargetConfig
from lbc.learner import Learner
from lbc.learner import learner as module
from lbc.types import Batch, EnvironmentSpec
from tests.builders import batch, learner, network

SEQUENCES = 7
SCALINGS = ("v_loss_scaling", "q_loss_scaling", "pi_loss_scaling", "auxiliary_scaling", "entropy_scaling")
EVERYTHING = {
    "popart": True,
    "bound_targets": True,
    "normalise_advantage": True,
    "entropy_scaling": 0.5,
    "auxiliary_scaling": 3.0,
    "clip_norm": 0.1,
}
STRICT = TargetConfig("scale_free", trust_ratio=0.2, kl_threshold=0.5, trace_lambda=0.9)
IMAGES = EnvironmentSpec("images", (1, 8, 8), np.uint8, num_actions=3, frame_stack=3)


def data(seed: int = 0) -> Batch:
    """Ends fall unevenly, so that pieces have different shares of the real transitions."""
    return batch(length=9, sequences=SEQUENCES, burn_in=3, ends=0.3, seed=seed)


def images(seed: int = 0) -> Batch:
    vectors = data(seed)
    rows, generator = len(vectors.first), torch.Generator().manual_seed(seed)
    frame = torch.randint(0, 256, (rows + 2, SEQUENCES, 1, 8, 8), dtype=torch.uint8, generator=generator)
    since_first = torch.randint(0, 5, (rows, SEQUENCES), generator=generator)
    return replace(vectors, frame=frame, since_first=since_first)


def gradients(who: Learner, batch: Batch) -> dict[str, torch.Tensor]:
    who.differentiate(batch)
    return {name: p.grad.clone() for name, p in who.network.named_parameters() if p.grad is not None}


def equal(mine: object, theirs: object) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 2, 3, 6])
@pytest.mark.parametrize("only", [*SCALINGS, None])
def test_the_gradient_of_every_loss_adds_up(only, chunk):
    """Pieces of 3 are 2, 2 and 3 sequences, pieces of 6 are 3 and 4."""
    net = network(target=STRICT, value_head="own")
    scalings = dict.fromkeys(SCALINGS, 1.0) if only is None else dict.fromkeys(SCALINGS, 0.0) | {only: 1.0}
    options = EVERYTHING | scalings | {"clip_norm": 1e9}
    whole = gradients(learner(net, **options, chunk=SEQUENCES), data())
    pieces = gradients(learner(net, **options, chunk=chunk), data())
    assert any(g.any() for g in whole.values())
    equal(pieces, whole)


@pytest.mark.parametrize("reading", ["printed", "entropy_controlled", "scale_free", "decoupled"])
@pytest.mark.parametrize("normalise", [False, True])
def test_updates_in_pieces_leave_the_same_weights_and_statistics(reading, normalise):
    options = EVERYTHING | {"normalise_advantage": normalise}
    learners = [
        learner(network(target=replace(STRICT, policy=reading)), **options, chunk=chunk)
        for chunk in (SEQUENCES, 3)
    ]
    for seed in range(3):
        whole, pieces = (who.update(data(seed), progress=0.1) for who in learners)
        equal(pieces.parts(), whole.parts())
    first, second = learners
    assert second.gradient_norm == pytest.approx(first.gradient_norm, rel=1e-10)
    before = network(target=replace(STRICT, policy=reading)).state_dict()
    after = first.network.state_dict()
    for name in ("scale.mean", "scale.sigma", "largest_reward"):
        assert not torch.equal(before[name], after[name]), f"{name} has moved"
    equal(dict(second.network.state_dict()), dict(after))


@pytest.mark.parametrize("chunk", [1, 3])
def test_images_are_stacked_and_centred_piece_by_piece(chunk):
    def after(chunk: int) -> dict[str, torch.Tensor]:
        net = network(IMAGES, torso="minatar", centre_observations=True)
        who = learner(net, **EVERYTHING, chunk=chunk)
        for seed in range(2):
            who.update(images(seed), progress=0.1)
        return dict(net.state_dict())

    whole = after(SEQUENCES)
    assert whole["torso.mean"].any()
    equal(after(chunk), whole)


def test_a_piece_without_real_transitions_says_nothing():
    """Of two sequences one is all padding: its piece adds nothing, the other is the whole batch."""
    one = batch(sequences=2)
    first = one.first.clone()
    first[:, 1] = True
    one = replace(one, first=first)
    net = network()
    equal(gradients(learner(net, chunk=1), one), gradients(learner(net, chunk=2), one))


def test_pieces_are_whole_sequences_of_bounded_size(monkeypatch):
    """Trained rows alone count, since only they keep activations: 10 rows of 4 numbers."""
    who = learner(network())
    assert len(who.pieces(data())) == 1
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 100)
    pieces = who.pieces(data())
    assert [p.first.shape[1] for p in pieces] == [1, 2, 2, 2]
    for name in ("frame", "reward", "log_mu"):
        torch.testing.assert_close(torch.cat([getattr(p, name) for p in pieces], 1), getattr(data(), name))
    torch.testing.assert_close(torch.cat([p.state for p in pieces], 2), data().state)
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 1)
    assert len(who.pieces(data())) == SEQUENCES, "a sequence is never cut"


def test_targets_are_bounded_by_the_largest_reward_of_all_pieces():
    """One reward, in the last sequence: the piece before it must not take 0 for the largest return."""
    one = batch(sequences=2)
    reward = torch.zeros_like(one.reward)
    reward[3, 1] = 5.0
    one = replace(one, reward=reward)
    net = network()
    whole, pieces = (gradients(learner(network(), bound_targets=True, chunk=c), one) for c in (2, 1))
    equal(pieces, whole)
    equal(gradients(learner(net, chunk=1), one), whole)  # 50 bounds nothing here
