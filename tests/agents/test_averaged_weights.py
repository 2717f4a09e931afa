"""With `learner.averaged_updates` an agent plays the mean of its weights, wherever it comes from."""

from __future__ import annotations

import pytest
import torch

from lbc.agents import load_agent
from lbc.cards import resolve
from lbc.cli import main
from lbc.parameters.checkpoint import load_weights
from lbc.parameters.trained import read_trained
from lbc.runtime import SerialRun
from lbc.runtime.evaluator import Evaluator
from lbc.runtime.experiment import assemble
from lbc.runtime.initial import begin_with
from tests.builders import catch_config


@pytest.mark.parametrize("form", ["full", "compact"])
def test_an_agent_plays_the_mean(tmp_path, form):
    settings = ["learner.averaged_updates=50", "learner.learning_rate_schedule=constant"]
    command = ["train", "catch", "--frames", "6000", "--out", str(tmp_path / "run"), "--set", *settings]
    assert main([*command, f"run.checkpoint_form={form}"]) == 0
    found = read_trained(tmp_path / "run" / "checkpoints")
    agent = load_agent(tmp_path / "run")
    assert len(found.means) == len(agent.networks) == 3
    for network, means, newest in zip(agent.networks, found.means, found.weights, strict=True):
        for (name, tensor), mean in zip(network.numbers().items(), means, strict=True):
            assert torch.equal(tensor, mean)
            if name.endswith("weight"):
                assert not torch.equal(tensor, newest[name])
                assert (tensor - newest[name]).norm() < 0.5 * newest[name].norm(), "it is the same one's"
    if form == "full":
        kept = load_weights(tmp_path / "run" / "checkpoints" / "weights.safetensors")
        for network, weights in zip(agent.networks, kept, strict=True):
            for name, tensor in network.state_dict().items():
                assert torch.equal(tensor, weights[name])


def test_without_it_nothing_is_kept(run):
    found = read_trained(run / "checkpoints")
    assert found.means == [] and found.weights
    for network, newest in zip(load_agent(run).networks, found.weights, strict=True):
        assert all(torch.equal(x, newest[name]) for name, x in network.state_dict().items())


def test_the_mean_says_the_same_while_statistics_move():
    """PopArt and centring rescale weights; their mean with the newest statistics would say something else."""
    config = catch_config(
        model={"centre_features": True},
        learner={"averaged_updates": 10**6, "popart": True, "learning_rate": 1e-12},
        target={"policy": "scale_free"},
    )
    run = SerialRun(config)
    try:
        learner = run.experiment.learners[0]
        while learner.updates < 30:
            run.step()
        batch = run.last_batch
        newest = learner.unroll(batch)
        means = learner.to_play()
        moved = float(
            (means["scale.sigma"] - learner.network.scale.sigma).abs() / learner.network.scale.sigma
        )
        learner.network.load_state_dict({name: x.clone() for name, x in means.items()})
        averaged = learner.unroll(batch)
    finally:
        run.close()
    assert moved > 0.01, "the statistics did move"
    spread = float(newest.value.detach().std())
    assert float((averaged.value - newest.value).abs().max()) < 0.05 * max(spread, 0.1)


def test_a_run_that_begins_with_another_s_weights_plays_them(run):
    config = resolve("catch", ["learner.averaged_updates=100", f"run.init={run}", "run.frames=1000"])
    begun = assemble(config)
    begin_with(begun, run)
    for learner, weights in zip(begun.learners, read_trained(run / "checkpoints").weights, strict=True):
        assert all(torch.equal(x, weights[name]) for name, x in learner.to_play().items())


def test_an_evaluation_round_has_weights_of_its_own():
    """Learners go on while a thread still sends them."""
    experiment = assemble(catch_config())
    evaluator = Evaluator.__new__(Evaluator)
    evaluator._rounds, evaluator._idle, sent = 0, True, []
    evaluator._listen, evaluator._send = lambda: True, sent.append
    evaluator.offer(experiment, 0)
    evaluator._sending.join()
    before = [{name: x.copy() for name, x in weights.items()} for weights in sent[0].weights]
    for learner in experiment.learners:
        for tensor in learner.live_tensors():
            tensor.data.add_(1)
    for weights, kept in zip(sent[0].weights, before, strict=True):
        assert all((weights[name] == kept[name]).all() for name in kept)
