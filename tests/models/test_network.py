"""One policy's network: inputs, the dueling algebra, the four readings, initial weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lbc.config import TargetConfig
from lbc.models import Outputs, PolicyNetwork, dueling_q, taken
from tests.builders import network
from tests.oracles import behavior as oracle


def look(net: PolicyNetwork, t: int = 4, b: int = 2, **changes) -> Outputs:
    generator = torch.Generator().manual_seed(1)
    inputs = {
        "observation": torch.randn(t, b, 4, dtype=torch.float64, generator=generator),
        "first": torch.zeros(t, b, dtype=torch.bool),
        "previous_action": torch.randint(0, 3, (t, b), generator=generator),
        "previous_reward": torch.randn(t, b, dtype=torch.float64, generator=generator),
        "state": net.initial_state(b),
    }
    return net(**(inputs | changes))


def last_layer(head: nn.Module) -> nn.Linear:
    return head[-1] if isinstance(head, nn.Sequential) else head


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 20.0))
def test_dueling_equals_the_literal_algebra_and_its_expectation_is_the_value(seed, scale):
    rng = np.random.default_rng(seed)
    advantage, value = rng.normal(0.0, scale, 5), rng.normal(0.0, scale)
    pi = rng.dirichlet(np.ones(5))
    q = dueling_q(
        torch.from_numpy(advantage), torch.from_numpy(np.log(pi)), torch.tensor(value, dtype=torch.float64)
    )
    np.testing.assert_allclose(q, oracle.dueling_q(advantage, pi, value), rtol=1e-9, atol=1e-9)
    assert float((torch.from_numpy(pi) * q).sum()) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("value_head", ["tied", "own"])
@pytest.mark.parametrize("policy", ["printed", "entropy_controlled", "scale_free", "decoupled"])
def test_expected_q_is_the_state_value_in_both_head_forms(value_head, policy):
    net = network(target=TargetConfig(policy=policy), value_head=value_head)
    for head in (net.advantage, net.value):
        nn.init.normal_(last_layer(head).weight)
    out = look(net)
    log_pi = torch.log_softmax(out.phi, -1)
    q = dueling_q(out.advantage, log_pi, out.value_q)
    torch.testing.assert_close((log_pi.exp() * q).sum(-1), out.value_q)
    if value_head == "tied":
        torch.testing.assert_close(out.value_q, out.value, rtol=0, atol=0)
        assert not out.value_q.requires_grad
    else:
        assert not torch.allclose(out.value_q, out.value) and out.value_q.requires_grad


def test_taken_picks_the_action():
    x = torch.arange(12).reshape(2, 2, 3)
    assert taken(x, torch.tensor([[0, 2], [1, 1]])).tolist() == [[0, 5], [7, 10]]


def test_the_four_readings_differ_in_phi_alone():
    """printed and entropy_controlled: A;  scale_free: gain A / scale;  decoupled: its own logits."""
    targets = {
        "printed": TargetConfig(policy="printed", kappa=10.0),
        "entropy_controlled": TargetConfig(policy="entropy_controlled", kappa=10.0),
        "scale_free": TargetConfig(policy="scale_free", scale_free_gain=3.0, scale_free_floor=0.2),
        "decoupled": TargetConfig(policy="decoupled", kappa=10.0),
    }
    out = {}
    for name, target in targets.items():
        net = network(target=target)
        if name == "scale_free":
            net.advantage_scale.fill_(0.25)
        out[name] = look(net)
    torch.testing.assert_close(out["printed"].phi, out["printed"].advantage)
    torch.testing.assert_close(out["entropy_controlled"].phi, out["entropy_controlled"].advantage)
    torch.testing.assert_close(out["scale_free"].phi, 12.0 * out["scale_free"].advantage)
    assert out["decoupled"].phi.shape == (4, 2, 3)
    for name in ("entropy_controlled", "scale_free"):
        torch.testing.assert_close(out[name].value, out["printed"].value, rtol=0, atol=0)


def test_decoupled_logits_are_a_head_of_their_own():
    net = network(target=TargetConfig(policy="decoupled"))
    before = look(net)
    with torch.no_grad():
        last_layer(net.advantage).weight.add_(1.0)
    after = look(net)
    torch.testing.assert_close(after.phi, before.phi, rtol=0, atol=0)
    assert not torch.allclose(after.advantage, before.advantage)
    assert network(target=TargetConfig(policy="printed")).logits is None


def test_the_running_scale_follows_the_spread_of_advantages():
    """Std over actions of (-1, 0, 1) is sqrt(2/3), and sigma is 2: the unit is counted in sigmas."""
    net = network(target=TargetConfig(policy="scale_free"))
    advantage = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64).expand(4, 2, 3)
    net.scale.sigma.fill_(2.0)
    net.track_advantages(advantage)
    assert float(net.advantage_scale) == pytest.approx(0.5 * np.sqrt(2 / 3)), "the first update sets it"
    net.track_advantages(3.0 * advantage)
    assert float(net.advantage_scale) == pytest.approx(1.0 * np.sqrt(2 / 3)), "a plain average while young"
    for _ in range(2000):
        net.track_advantages(100.0 + 5.0 * advantage)
    assert float(net.advantage_scale) == pytest.approx(2.5 * np.sqrt(2 / 3))
    assert "advantage_scale" in net.state_dict(), "an actor that pulls weights gets the scale with them"


def test_previous_action_counts_except_at_the_first_step():
    net = network(lstm_units=0, head_units=0)
    zero, two = torch.zeros(4, 2, dtype=torch.int64), torch.full((4, 2), 2)
    first = torch.zeros(4, 2, dtype=torch.bool)
    first[2, 1] = True
    with_zero, with_two = (look(net, first=first, previous_action=x).value for x in (zero, two))
    same = with_zero == with_two
    np.testing.assert_array_equal(same, first)


def test_previous_action_is_all_zeros_at_first():
    net = network(lstm_units=0)
    seen = []
    net.core.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    first = torch.tensor([[True, False]])
    reward = torch.tensor([[0.0, 0.5]], dtype=torch.float64)
    look(net, t=1, first=first, previous_action=torch.tensor([[1, 1]]), previous_reward=reward)
    assert seen[0][0, :, 8:].tolist() == [[0, 0, 0, 0.0], [0, 1, 0, 0.5]]  # 8 features, 3 actions, reward


def test_previous_reward_counts():
    net = network(lstm_units=0, head_units=0)
    zero = torch.zeros(4, 2, dtype=torch.float64)
    before = look(net, previous_reward=zero).value
    changed = look(net, previous_reward=zero + 1.0).value != before
    assert changed.all()


@pytest.mark.parametrize("units", [0, 6])
def test_step_by_step_equals_the_whole_sequence(units):
    net = network(lstm_units=units)
    generator = torch.Generator().manual_seed(3)
    observation = torch.randn(6, 2, 4, dtype=torch.float64, generator=generator)
    first = torch.rand(6, 2, generator=generator) < 0.3
    action = torch.randint(0, 3, (6, 2), generator=generator)
    reward = torch.randn(6, 2, dtype=torch.float64, generator=generator)
    whole = net(observation, first, action, reward, net.initial_state(2))
    state = net.initial_state(2)
    for t in range(6):
        one = slice(t, t + 1)
        out = net(observation[one], first[one], action[one], reward[one], state)
        state = out.state
        for name in ("phi", "advantage", "value", "value_q"):
            torch.testing.assert_close(getattr(out, name)[0], getattr(whole, name)[t])
    torch.testing.assert_close(state, whole.state)


def test_initial_gains_of_the_heads():
    """Hidden layers W W^T = 2 I;  last layers 0.01^2 I (policy, advantage) and 1 (values);  biases 0."""
    net = network(value_head="own", target=TargetConfig(policy="decoupled"))
    gains = {"value": 1.0, "value_q": 1.0, "advantage": 0.01, "logits": 0.01}
    for name, gain in gains.items():
        hidden, _, last = getattr(net, name)
        for layer, g in ((hidden, np.sqrt(2.0)), (last, gain)):
            w = layer.weight.detach()
            w = w if w.shape[0] <= w.shape[1] else w.t()
            expected = g**2 * torch.eye(len(w), dtype=torch.float64)
            torch.testing.assert_close(w @ w.t(), expected, rtol=1e-5, atol=1e-6 * g**2)
            assert not layer.bias.any()


def test_the_first_policy_is_nearly_uniform():
    for policy in ("printed", "decoupled"):
        log_pi = torch.log_softmax(look(network(target=TargetConfig(policy=policy))).phi, -1)
        assert (log_pi.exp() - 1 / 3).abs().max() < 0.02


def test_heads_without_hidden_layer_and_auxiliary_switches():
    net = network(head_units=0, auxiliary_forward=False, auxiliary_inverse=False)
    assert isinstance(net.value, nn.Linear)
    assert net.inverse is None and net.forward_model is None
    assert look(net).value.shape == (4, 2)


def test_auxiliary_tasks_see_what_their_names_say():
    """Inverse: z_t and z_{t+1};  forward: z_t and a_t.  Output t depends on nothing else."""
    net = network()
    z = torch.randn(5, 1, 8, dtype=torch.float64)
    action = torch.tensor([[0], [1], [2], [0]])
    logits, predicted = net.inverse(z), net.forward_model(z, action)
    assert logits.shape == (4, 1, 3) and predicted.shape == (4, 1, 8)
    changed = z.clone()
    changed[2] += 1.0
    assert [bool(x) for x in (net.inverse(changed) != logits).flatten(1).any(1)] == [False, True, True, False]
    moved = (net.forward_model(changed, action) != predicted).flatten(1).any(1)
    assert [bool(x) for x in moved] == [False, False, True, False]
    other = action.clone()
    other[1] = 0
    moved = (net.forward_model(z, other) != predicted).flatten(1).any(1)
    assert [bool(x) for x in moved] == [False, True, False, False]


def test_a_scale_free_policy_does_not_magnify_noise():
    """std(A) = 0.001 is below the floor 0.2 sigma: Phi = 3 A / 0.2."""
    net = network(target=TargetConfig(policy="scale_free", scale_free_gain=3.0, scale_free_floor=0.2))
    net.advantage_scale.fill_(0.001)
    out = look(net)
    torch.testing.assert_close(out.phi, 15.0 * out.advantage)


@pytest.mark.parametrize("slope", [0.0, 0.1])
@pytest.mark.parametrize("policy", ["printed", "decoupled"])
def test_with_a_slope_units_learn_that_were_pushed_down_together(policy, slope):
    """Without it a head whose units are all below zero says the same everywhere, and its gradient is zero."""
    net = network(target=TargetConfig(policy=policy), head_slope=slope, head_units=16)
    head = net.advantage if policy == "printed" else net.logits
    assert isinstance(head, nn.Sequential)
    nn.init.normal_(last_layer(head).weight)
    assert bool((net.policy_units(look(net).x) > 0).any())
    with torch.no_grad():
        head[0].bias -= 100.0
    out = look(net)
    units = net.policy_units(out.x)
    (gradient,) = torch.autograd.grad(out.phi.square().sum(), head[0].weight)
    assert not (units > 0).any()
    assert bool((units.std((0, 1)) > 0).all()) == bool((gradient != 0).any()) == (slope > 0)


def test_linear_heads_have_no_units_of_their_own():
    net = network(head_units=0)
    assert net.policy_units(look(net).x) is None


@pytest.mark.parametrize("head_units", [0, 16])
@pytest.mark.parametrize(("policy", "value_head"), [("printed", "tied"), ("decoupled", "own")])
def test_centring_what_the_heads_read_changes_nothing_that_they_say(policy, value_head, head_units):
    options = {"value_head": value_head, "head_units": head_units, "centre_features": True}
    net = network(target=TargetConfig(policy=policy), **options)
    plain = network(target=TargetConfig(policy=policy), **(options | {"centre_features": False}))
    before = look(net)
    torch.testing.assert_close(before.phi, look(plain).phi)  # as built
    assert "features_mean" not in plain.state_dict()
    for _ in range(3):
        net.track_features(before.x)
    after = look(net)
    for name in ("phi", "advantage", "value", "value_q"):
        torch.testing.assert_close(getattr(after, name), getattr(before, name))
    assert float(net.features_mean.norm()) > 0
    torch.testing.assert_close(net.features_mean, before.x.mean((0, 1)))


def test_the_steps_of_centred_heads_are_of_what_differs_between_states():
    """The gradient of the heads' first weights is that of inputs less their mean."""
    net = network(head_units=0, centre_features=True)
    x = look(net).x
    net.track_features(x)
    out = look(net)
    (gradient,) = torch.autograd.grad(out.value.sum(), net.value.weight)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-6)  # alike in all states
