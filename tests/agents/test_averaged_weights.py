"""With `learner.averaged_updates` an agent plays the mean of its weights, wherever it comes from."""

from __future__ import annotations

import pytest
import torch

from lbc.agents import load_agent
from lbc.cli import main
from lbc.parameters.checkpoint import load_weights
from lbc.parameters.trained import read_trained


@pytest.mark.parametrize("form", ["full", "compact"])
def test_an_agent_plays_the_mean(tmp_path, form):
    settings = ["learner.averaged_updates=50", "learner.learning_rate_schedule=constant"]
    command = ["train", "catch", "--frames", "6000", "--out", str(tmp_path / "run"), "--set", *settings]
    assert main([*command, f"run.checkpoint_form={form}"]) == 0
    found = read_trained(tmp_path / "run" / "checkpoints")
    agent = load_agent(tmp_path / "run")
    assert len(found.means) == len(agent.networks) == 3
    for network, means, newest in zip(agent.networks, found.means, found.weights, strict=True):
        for (name, parameter), mean in zip(network.named_parameters(), means, strict=True):
            assert torch.equal(parameter, mean)
            if parameter.numel() > 100:
                assert not torch.equal(parameter, newest[name])
                assert (parameter - newest[name]).norm() < 0.5 * newest[name].norm(), "it is the same one's"
        for name, buffer in network.named_buffers():
            assert torch.equal(buffer, newest[name]), "running statistics are the newest"
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
