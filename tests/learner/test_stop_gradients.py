"""Which loss moves which head, in both head forms and all readings."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lbc.config import TargetConfig
from lbc.learner import Learner
from tests.builders import batch, learner, network

READINGS = ["printed", "entropy_controlled", "scale_free", "decoupled"]


def moved(who: Learner, part: str) -> set[str]:
    """Children of the network that the gradient of one part of the loss reaches."""
    data = batch(ends=0.2)
    loss = who.losses(who.estimate(data), data).parts()[part]
    who.network.zero_grad()
    loss.backward()
    return {
        name
        for name, child in who.network.named_children()
        if any(p.grad is not None and bool(p.grad.any()) for p in child.parameters())
    }


@pytest.mark.parametrize("policy", READINGS)
def test_the_q_loss_does_not_move_a_tied_value(policy):
    who = learner(network(target=TargetConfig(policy=policy)))
    assert moved(who, "q") == {"torso", "core", "advantage"}


@pytest.mark.parametrize("policy", READINGS)
def test_an_own_state_value_is_moved_by_the_q_loss_alone(policy):
    who = learner(network(target=TargetConfig(policy=policy), value_head="own"))
    assert moved(who, "q") == {"torso", "core", "advantage", "value_q"}
    assert moved(who, "value") == {"torso", "core", "value"}


def test_the_policy_loss_moves_what_the_policy_is_made_of():
    for policy in READINGS:
        net = network(target=TargetConfig(policy=policy))
        head = "logits" if policy == "decoupled" else "advantage"
        assert moved(learner(net), "policy") == {"torso", "core", head}
        assert moved(learner(net, entropy_scaling=0.1), "entropy") == {"torso", "core", head}


def test_auxiliary_tasks_move_the_torso_and_themselves():
    assert moved(learner(network()), "auxiliary") == {"torso", "inverse", "forward_model"}
    assert moved(learner(network(auxiliary_forward=False)), "auxiliary") == {"torso", "inverse"}
    assert moved(learner(network(auxiliary_inverse=False)), "auxiliary") == {"torso", "forward_model"}


@pytest.mark.parametrize("policy", READINGS)
@pytest.mark.parametrize("value_head", ["tied", "own"])
def test_centring_does_not_move_pi(policy, value_head):
    """dQ(a)/dA(b) = [a = b] - pi(b) exactly: pi inside the centring is a constant.

    If pi moved with A (in all readings but 'decoupled' it is made of A) a further term would appear.
    """
    net = network(target=TargetConfig(policy=policy, kappa=20.0), value_head=value_head)
    nn.init.normal_(net.advantage[-1].weight)
    who = learner(net)
    data = batch()
    e = who.estimate(data)
    loss = who.losses(e, data).q
    (gradient,) = torch.autograd.grad(loss, e.outputs.advantage, retain_graph=True)
    pi = e.log_pi[:-1].detach().exp()
    one_hot = nn.functional.one_hot(data.action[:-1], 3)
    error = (e.q_t - e.q_target).detach().unsqueeze(-1)
    torch.testing.assert_close(gradient[:-1], 5.0 * error * (one_hot - pi) / e.real.sum())
    assert not gradient[-1].any()
    if value_head == "own":
        (gradient,) = torch.autograd.grad(loss, e.outputs.value_q)
        torch.testing.assert_close(gradient[:-1], 5.0 * error.squeeze(-1) / e.real.sum())


def test_the_value_loss_gradient_is_the_error():
    """d/dV_t of 1/2 (sg(v_t) - V_t)^2 = V_t - v_t, over n; the value behind the last step gets none."""
    who = learner(network())
    data = batch(ends=0.3)
    e = who.estimate(data)
    (gradient,) = torch.autograd.grad(who.losses(e, data).value, e.outputs.value)
    expected = torch.where(e.real, e.outputs.value.detach()[:-1] - e.v_target, 0.0) / e.real.sum()
    torch.testing.assert_close(gradient[:-1], expected)
    assert not gradient[-1].any(), "a bootstrap value is part of a target"


def test_the_policy_gradient_is_that_of_log_pi():
    """d/dphi_b of -5 rho adv log pi(a) = 5 rho adv (pi_b - [a = b]), over n; rho and adv are constants."""
    who = learner(network())
    data = batch(ends=0.3)
    e = who.estimate(data)
    (gradient,) = torch.autograd.grad(who.losses(e, data).policy, e.outputs.phi)
    one_hot = nn.functional.one_hot(data.action[:-1], 3)
    weight = torch.where(e.real, e.rho_t * e.advantage, 0.0).unsqueeze(-1)
    expected = 5.0 * weight * (e.log_pi[:-1].detach().exp() - one_hot) / e.real.sum()
    torch.testing.assert_close(gradient[:-1], expected)


def test_targets_are_constants():
    e = learner(network()).estimate(batch())
    for constant in (e.v_target, e.q_target, e.advantage, e.rho_t):
        assert not constant.requires_grad
    assert e.q_t.requires_grad and e.outputs.value.requires_grad and e.log_pi_t.requires_grad
