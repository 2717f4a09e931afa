"""The parameter server and the weights on disk."""

from __future__ import annotations

import torch
from torch import nn

from lbc.config import TargetConfig
from lbc.parameters import ParameterServer, load_weights, save_weights
from lbc.runtime import SerialRun
from tests.builders import catch_config, network


def equal(a: nn.Module, b: nn.Module) -> bool:
    mine, theirs = a.state_dict(), b.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)


def test_pulled_weights_are_those_that_were_pushed():
    server, source, copy = ParameterServer(), network(seed=1), network(seed=2)
    server.push(0, source, version=5)
    assert not equal(source, copy)
    assert server.pull(0, copy) == 5
    assert equal(source, copy)


def test_what_is_pushed_is_a_snapshot():
    server, source, copy = ParameterServer(), network(seed=1), network(seed=2)
    server.push(0, source, version=1)
    with torch.no_grad():
        for p in source.parameters():
            p.add_(1.0)
    server.pull(0, copy)
    assert not equal(source, copy)
    with torch.no_grad():
        for p in copy.parameters():
            p.zero_()
    third = network(seed=3)
    server.pull(0, third)
    assert any(p.any() for p in third.parameters()), "a pull hands out a copy as well"


def test_an_up_to_date_actor_loads_nothing():
    server, source, copy = ParameterServer(), network(seed=1), network(seed=2)
    server.push(0, source, version=4)
    assert server.pull(0, copy, have=4) == 4
    assert not equal(source, copy)
    assert server.pull(0, copy, have=3) == 4
    assert equal(source, copy)


def test_policies_are_kept_apart():
    server = ParameterServer()
    nets = [network(seed=i) for i in range(3)]
    for i, net in enumerate(nets):
        server.push(i, net, version=10 * i)
    assert [server.version(i) for i in range(3)] == [0, 10, 20]
    copy = network(seed=9)
    server.pull(1, copy)
    assert equal(copy, nets[1]) and not equal(copy, nets[0])
    assert server.weights(2).keys() == nets[2].state_dict().keys()


def test_buffers_travel_with_the_weights():
    server, source, copy = ParameterServer(), network(seed=1), network(seed=1)
    source.advantage_scale.fill_(0.125)
    server.push(0, source, version=0)
    server.pull(0, copy)
    assert float(copy.advantage_scale) == 0.125


def test_a_run_pushes_and_pulls_at_its_intervals():
    """Learners push every 3 updates, the actor pulls every 4 steps; between pulls its weights rest."""
    run = SerialRun(catch_config())
    e = run.experiment
    pulled = None
    for step in range(40):
        published = [e.server.version(i) for i in range(3)]
        run.step()
        assert [e.server.version(i) for i in range(3)] == [x.updates // 3 * 3 for x in e.learners]
        if step % 4 == 0:
            pulled = published
        assert run._versions == pulled
    assert pulled[0] > 0
    fresh = SerialRun(catch_config()).experiment
    assert not equal(e.actor_networks[0], fresh.actor_networks[0])


def test_weights_survive_the_disk_exactly(tmp_path):
    nets = [network(seed=i, target=TargetConfig(policy="scale_free")) for i in range(11)]
    nets[3].advantage_scale.fill_(0.3)
    path = tmp_path / "weights.safetensors"
    save_weights(path, [net.state_dict() for net in nets], {"frames": "12"})
    loaded = load_weights(path)
    assert len(loaded) == 11
    for net, weights in zip(nets, loaded, strict=True):
        copy = network(seed=99, target=TargetConfig(policy="scale_free"))
        copy.load_state_dict(weights)
        assert equal(copy, net)
    assert [p.name for p in tmp_path.iterdir()] == ["weights.safetensors"], "no temporary file is left"


def test_a_second_save_replaces_the_first(tmp_path):
    path = tmp_path / "weights.safetensors"
    for seed in (1, 2):
        save_weights(path, [network(seed=seed).state_dict()], {})
    copy = network(seed=9)
    copy.load_state_dict(load_weights(path)[0])
    assert equal(copy, network(seed=2))
