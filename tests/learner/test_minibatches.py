"""A batch in minibatches is so many updates, one after the other, from some of its sequences each."""

from __future__ import annotations

import pytest
import torch

from lbc.config import BufferConfig, Config, LearnerConfig
from lbc.errors import TrainingError, UserError
from lbc.models.torso import CENTRING_BATCHES
from lbc.parameters import ParameterServer
from lbc.runtime.crew import Crew
from tests.builders import batch, learner, network

OPTIONS = {"popart": True, "bound_targets": True, "normalise_advantage": True, "entropy_scaling": 0.1}


def equal(mine, theirs) -> bool:
    return all(torch.equal(a, b) for a, b in zip(mine.live_tensors(), theirs.live_tensors(), strict=True))


@pytest.mark.parametrize(("minibatches", "sizes"), [(1, [7]), (3, [2, 2, 3]), (7, [1] * 7)])
def test_each_is_an_update_of_its_own(minibatches, sizes):
    whole = batch(length=9, sequences=7, burn_in=3, ends=0.3)
    one = learner(network(centre_observations=True), minibatches=minibatches, **OPTIONS)
    other = learner(network(centre_observations=True), **OPTIONS)
    one.update(whole, 0.5)
    begin, norms = 0, []
    for size in sizes:
        other.update(whole.part(begin, begin + size), 0.5)
        norms.append(other.gradient_norm)
        begin += size
    assert equal(one, other) and one.updates == other.updates == minibatches
    assert one.gradient_norm == pytest.approx(sum(norms) / len(norms))
    if minibatches > 1:
        together = learner(network(centre_observations=True), **OPTIONS)
        together.update(whole, 0.5)
        assert not equal(one, together)


def test_a_bad_gradient_in_any_of_them_is_told():
    whole = batch(sequences=4)
    whole.reward[2, 1] = float("nan")  # of the second minibatch
    one = learner(network(), minibatches=4)
    with pytest.raises(TrainingError, match="at update 1"):
        one.update(whole, 0.5)


@pytest.mark.parametrize(
    ("minibatches", "interval", "pushed"),
    [(2, 4, [0, 4, 4, 8]), (3, 4, [0, 6, 9, 12]), (4, 3, [4, 8, 12, 16])],
)
def test_weights_are_pushed_as_soon_as_the_interval_is_over(minibatches, interval, pushed):
    one, server, versions = learner(network(), minibatches=minibatches), ParameterServer(), []
    server.push(0, one.network, 0)
    crew = Crew([one], server, interval, threads=False)
    for seed in range(4):
        crew.learn(batch(sequences=4, seed=seed), 0.5)
        versions.append(server.version(0))
    assert versions == pushed


def test_the_observations_mean_is_followed_for_as_many_batches():
    one = learner(network(centre_observations=True), minibatches=4)
    one.updates = 4 * CENTRING_BATCHES - 4
    assert one.still_centring
    one.update(batch(sequences=4), 0.5)
    assert not one.still_centring
    one.updates = CENTRING_BATCHES  # a quarter of the way
    assert one.still_centring


def test_there_are_no_more_of_them_than_sequences():
    with pytest.raises(UserError, match=r"minibatches is 5, but a batch has only 4 .*batch_size"):
        Config(learner=LearnerConfig(minibatches=5), buffer=BufferConfig(batch_size=4))
