"""One target policy for all learners: the behavior itself, of everybody's newest weights (GDI-H3's way)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lbc.behavior import PolicyHyperParameters, build_mapping, build_target
from lbc.config import BehaviorConfig, Config, LearnerConfig, TargetConfig
from lbc.errors import UserError
from lbc.learner import Learner
from lbc.learner.peers import Peers
from lbc.parameters import ParameterServer
from lbc.runtime.experiment import assemble
from lbc.runtime.run import SerialRun
from tests.builders import batch, catch_config, network
from tests.oracles import behavior as oracle

SHARED = TargetConfig("printed", shared=True)
POPULATION = (PolicyHyperParameters(0, 0.9, "log"), PolicyHyperParameters(1, 0.9, "fourth_root"))


def two_learners(components: tuple[int, ...] = ()) -> tuple[list[Learner], ParameterServer]:
    target = build_target(SHARED, build_mapping(BehaviorConfig(components=components), 2), 2)
    config, server = LearnerConfig(warmup_steps=0), ParameterServer()
    nets = [network(target=SHARED, seed=seed) for seed in (1, 2)]
    for net in nets:  # preferences of some size
        with torch.no_grad():
            net.advantage[-1].weight.mul_(300.0)
    found = [Learner(h, net, config, SHARED, target) for h, net in zip(POPULATION, nets, strict=True)]
    for i, learner in enumerate(found):
        server.push(i, learner.network, version=0)
    for i, learner in enumerate(found):
        learner.peers = Peers({POPULATION[1 - i]: network(target=SHARED, seed=9)}, server)
    return found, server


def data(components: int = 2):
    """Everybody's psi differs: taus in 0..5, omegas that sum to 1."""
    torch.manual_seed(3)
    found = batch(burn_in=2, ends=0.2)
    tau = 5.0 * torch.rand(*found.first.shape, components, dtype=torch.float64)
    omega = torch.softmax(torch.randn(*found.first.shape, components, dtype=torch.float64), -1)
    return replace(found, psi=torch.cat([tau, omega], -1), state=found.state.repeat(2, 1, 1, 1))


@pytest.mark.parametrize("components", [(0, 1), (0, 1, 0)])
def test_the_shared_target_is_the_literal_mixture(components):
    learners, _ = two_learners(components)
    rows, m = data(len(components)), len(components)
    phi = [learner.unroll(rows).phi.detach() for learner in learners]
    found = [learner.estimate(rows).log_pi.exp() for learner in learners]
    psi = rows.psi[rows.burn_in :]
    assert float((phi[0] - phi[1]).abs().max()) > 0.5
    for t in range(psi.shape[0]):
        for b in range(psi.shape[1]):
            tau, omega = psi[t, b, :m].tolist(), psi[t, b, m:].tolist()
            each = [oracle.softmax(phi[i][t, b].tolist(), tau[k]) for k, i in enumerate(components)]
            expected = oracle.mixture(each, omega)
            assert found[0][t, b].tolist() == pytest.approx(expected)
            assert found[1][t, b].tolist() == pytest.approx(expected)


def test_each_advantage_function_is_centred_under_the_shared_policy():
    """sum_a pi(a) Q_i(a) = V_i for both learners, with the one pi."""
    learners, _ = two_learners()
    rows = data()
    for learner in learners:
        e = learner.estimate(rows)
        for t in range(len(e.log_pi) - 1):
            for b in range(e.log_pi.shape[1]):
                pi, a = e.log_pi[t, b].exp().tolist(), e.outputs.advantage[t, b].tolist()
                q = oracle.dueling_q(a, pi, float(e.outputs.value_q[t, b]))
                assert float(e.q_t[t, b].detach()) == pytest.approx(q[int(rows.action[rows.burn_in + t, b])])


def test_the_policy_gradient_moves_a_learner_s_own_network_alone():
    """d log pi / d Phi_i is the responsibility of component i times that of its softmax."""
    (first, _), _ = two_learners()
    rows = data()
    e = first.estimate(rows)
    phi = e.outputs.phi
    (gradient,) = torch.autograd.grad(e.log_pi_t.sum(), phi, retain_graph=True)
    psi, action = rows.psi[rows.burn_in :], rows.action[rows.burn_in :]
    for t in range(len(e.log_pi_t)):
        for b in range(psi.shape[1]):
            tau, omega, a = float(psi[t, b, 0]), float(psi[t, b, 2]), int(action[t, b])
            own = oracle.softmax(phi[t, b].tolist(), tau)
            share = omega * own[a] / float(e.log_pi[t, b, a].exp())
            expected = [share * tau * ((k == a) - own[k]) for k in range(3)]
            assert gradient[t, b].tolist() == pytest.approx(expected)
    first.losses(e, rows).total().backward()
    assert first.peers is not None
    others = [p for net in first.peers._networks.values() for p in net.parameters()]
    assert all(parameter.grad is None for parameter in others)


def test_peers_are_as_they_were_pushed_last():
    (first, second), server = two_learners()
    rows = data()
    before = first.estimate(rows).log_pi
    second.update(rows, 0.5)
    first.schedule(0.5)
    torch.testing.assert_close(first.estimate(rows).log_pi, before)  # not pushed yet
    server.push(1, second.network, second.updates)
    first.schedule(0.5)
    assert float((first.estimate(rows).log_pi - before).abs().max()) > 1e-6


def test_a_run_with_a_shared_target_learns_one_policy():
    config = catch_config(target={"shared": True, "policy": "printed"}, learner={"push_interval": 1})
    run = SerialRun(config)
    try:
        weights = [w.clone() for w in run.experiment.learners[0].network.parameters()]
        while run.experiment.learners[0].updates < 3:
            run.step()
        report = run.report()
        now = list(run.experiment.learners[0].network.parameters())
    finally:
        run.close()
    assert any(not torch.equal(a, b) for a, b in zip(weights, now, strict=True))
    # not zero: at a report, a learner's view of its peers is one update old
    assert report["kl_between_policies"] < 0.1 * report["kl_between_components"]
    assert assemble(catch_config()).learners[0].peers is None
    for one in run.experiment.learners:
        others = {policy.index for policy in one.peers._networks}
        assert others == set(range(len(run.experiment.learners))) - {one.policy.index}


def test_epsilon_greedy_cannot_be_a_shared_target():
    with pytest.raises(UserError, match="has no gradient"):
        Config(behavior=BehaviorConfig(entropy_control="epsilon_greedy", tau_high=1.0), target=SHARED)
