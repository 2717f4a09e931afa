"""The optimizer takes torch's steps, bit for bit, and can be saved, restored and begun anew."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from lbc.config import LearnerConfig
from lbc.learner.optimizer import AdamW

RATE, DECAY = 0.01, 0.2


def pair():
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(12, 2))
    ours[0].weight.data = ours[0].weight.data.contiguous(memory_format=torch.channels_last)
    theirs = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(12, 2))
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def differentiated(net, number):
    x = torch.randn(5, 2, 3, 3, generator=torch.Generator().manual_seed(number))
    net(x).square().mean().backward()


def test_steps_are_those_of_torch():
    ours, theirs = pair()
    config = LearnerConfig()
    mine = AdamW(ours.parameters(), config)
    torchs = torch.optim.AdamW(
        theirs.parameters(),
        lr=RATE,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        weight_decay=0.0,
        fused=True,
    )
    for number in range(5):
        mine.zero_grad()
        torchs.zero_grad()
        differentiated(ours, number)
        differentiated(theirs, number)
        mine.schedule(RATE, DECAY)
        mine.step()
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.mul_(torch.tensor(1.0 - RATE * DECAY))
        torchs.step()
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b), number


def test_the_decay_is_that_of_torch():
    ours, theirs = pair()
    mine, torchs = (
        AdamW(ours.parameters(), LearnerConfig()),
        torch.optim.AdamW(theirs.parameters(), lr=RATE, weight_decay=DECAY, eps=LearnerConfig().adam_epsilon),
    )
    differentiated(ours, 0)
    differentiated(theirs, 0)
    mine.schedule(RATE, DECAY)
    mine.step()
    torchs.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_it_goes_on_from_what_was_saved():
    ours, again = pair()
    first, second = (AdamW(net.parameters(), LearnerConfig()) for net in (ours, again))
    for one in (first, second):
        one.schedule(RATE, DECAY)
    differentiated(ours, 0)
    first.step()
    saved = first.state()
    again.load_state_dict(ours.state_dict())
    second.restore(saved)
    for net, one in ((ours, first), (again, second)):
        one.zero_grad()
        differentiated(net, 1)
        one.step()
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), again.parameters(), strict=True))
    assert float(saved["step"][0]) == 1.0, "a copy does not move on"
    second.restore({})
    assert not any(bool(x.any()) for kept in second.moments.values() for x in kept)


@pytest.mark.parametrize("window", [3, 1000])
def test_the_mean_follows_the_weights(window):
    """w' + (w - w') r with r = 9 / (step + 8), and 1 / window at least; a restart goes on with it."""
    net, _ = pair()
    config = LearnerConfig(averaged_updates=window)
    optimizer = AdamW(net.parameters(), config, net.parameters())
    optimizer.schedule(0.1, DECAY)
    expected = [p.detach().clone() for p in net.parameters()]
    for step in range(1, 31):
        optimizer.zero_grad()
        differentiated(net, step)
        optimizer.step()
        optimizer.average()
        rate = max(9.0 / (step + 8.0), 1.0 / window)
        expected = [e + (p.detach() - e) * rate for e, p in zip(expected, net.parameters(), strict=True)]
        if step == 15:
            saved = optimizer.state()
            optimizer = AdamW(net.parameters(), config, net.parameters())
            optimizer.schedule(0.1, DECAY)
            optimizer.restore(saved)
    for mean, e, p in zip(optimizer.moments["average"], expected, net.parameters(), strict=True):
        torch.testing.assert_close(mean, e)
        assert not torch.equal(mean, p)
    optimizer.restore({})
    for mean, p in zip(optimizer.moments["average"], net.parameters(), strict=True):
        assert torch.equal(mean, p), "anew, from the weights as they are"


def test_a_parameter_without_gradient_stays():
    net = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    one = AdamW(net.parameters(), LearnerConfig())
    one.schedule(RATE, 0.0)
    before = net[1].weight.detach().clone()
    net[0](torch.ones(1, 2)).sum().backward()
    one.step()
    assert torch.equal(net[1].weight, before) and float(one.moments["step"][-1]) == 0.0
    assert float(one.moments["step"][0]) == 1.0


def test_a_run_does_not_load_torch_s_compiler():
    """It would cost every start seconds."""
    lines = """
import sys
from lbc.cards import resolve
from lbc.runtime.run import SerialRun
run = SerialRun(resolve("catch", ["actor.num_envs=4", "buffer.batch_size=4"], runtime="serial"))
while run.experiment.learners[0].updates < 2:
    run.step()
run.report()
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stderr)
    assert done.stdout.split() == ["False"]
