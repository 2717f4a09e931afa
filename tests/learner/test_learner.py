"""One learner: what a batch means to it, and what one update does."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lbc.behavior import SHAPINGS, PolicyHyperParameters, build_mapping, build_target
from lbc.config import BehaviorConfig, TargetConfig
from lbc.errors import TrainingError
from lbc.learner import Learner, divergence
from lbc.learner.trust import inside_trust_region
from lbc.models.torso import CENTRING_BATCHES
from lbc.types import Batch
from tests.builders import batch, learner, network, target_of


def constant_value(net, value: float) -> None:
    """V = value and A = 0 everywhere, whatever is seen."""
    for head, bias in ((net.value, value), (net.advantage, 0.0)):
        nn.init.zeros_(head[-1].weight)
        nn.init.constant_(head[-1].bias, bias)


def on_policy(who: Learner, data: Batch) -> Batch:
    """The same rows as if the learner's own target policy had played them."""
    with torch.no_grad():
        cut = data.burn_in
        log_pi = who._policy_of.log_pi(0, who.unroll(data).phi, data.psi[cut:])
        return replace(data, log_mu=torch.cat([data.log_mu[:cut], log_pi]))


def parameters(net: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in net.parameters()]


def test_the_ratio_is_one_where_mu_is_pi():
    who = learner(network())
    e = who.estimate(on_policy(who, batch(burn_in=2, ends=0.3)))
    torch.testing.assert_close(e.rho_t, e.real.double())
    assert not e.real.all()


def test_ratios_are_those_of_the_action_taken():
    """pi nearly uniform over 3, mu(a) = 0.5: ratio 2/3; the clip holds it at 1.05 where mu(a) = 0.1."""
    net = network()
    nn.init.zeros_(net.logits[-1].weight)
    data = batch(length=2, sequences=1)
    log_mu = torch.tensor([[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.2, 0.2, 0.6]], dtype=torch.float64).log()
    data = replace(data, log_mu=log_mu.unsqueeze(1), action=torch.tensor([[0], [2], [1]]))
    assert learner(net).estimate(data).rho_t.flatten().tolist() == pytest.approx([2 / 3, 1.05])


def test_a_reward_is_credited_to_the_action_before_it():
    """One reward, in row 4 of sequence 1; without discount it belongs to the action of row 3 alone."""
    net = network()
    constant_value(net, 0.0)
    who = learner(net, discount=0.0)
    data = batch()
    reward = torch.zeros_like(data.reward)
    reward[4, 1] = 2.0
    data = on_policy(who, replace(data, reward=reward))
    e = who.estimate(data)
    losses = who.losses(e, data)
    row, column, action = 3, 1, int(data.action[3, 1])

    (for_phi,) = torch.autograd.grad(losses.policy, e.outputs.phi, retain_graph=True)
    (for_advantage,) = torch.autograd.grad(losses.q, e.outputs.advantage, retain_graph=True)
    (for_value,) = torch.autograd.grad(losses.value, e.outputs.value)
    for gradient in (for_phi, for_advantage):
        assert gradient.abs().sum(-1).nonzero().tolist() == [[row, column]]
        assert gradient[row, column].argmin() == action, "the action that paid becomes more likely"
    assert for_value.nonzero().tolist() == [[row, column]]
    n = data.reward[1:].numel()
    assert float(for_value[row, column]) == pytest.approx(-2.0 / n)  # d/dV of 1/2 (2 - V)^2 at V = 0
    pi = math.exp(float(e.log_pi[row, column, action].detach()))
    assert float(for_phi[row, column, action]) == pytest.approx(-5.0 * 2.0 * (1 - pi) / n)


def test_termination_and_truncation_inside_a_sequence():
    """V = 10, gamma = 1/2, every reward 1, on-policy; row 2 terminated, 5 truncated, 3 and 6 first.

    v_6 = 1 + 10/2 = 6;  5 -> 6 is not real: 10;   v_4 = 1 + 10/2 = 6 (truncated: the value goes on);
    v_3 = 1 + 6/2 = 4;   2 -> 3 is not real: 10;   v_1 = 1 (terminated);   v_0 = 1 + 1/2 = 1.5
    """
    net = network()
    constant_value(net, 10.0)
    who = learner(net, discount=0.5)
    data = batch(length=7, sequences=1)
    first = torch.zeros(8, 1, dtype=torch.bool)
    first[[3, 6]] = True
    terminated = torch.zeros(8, 1, dtype=torch.bool)
    terminated[2] = True
    data = replace(data, first=first, terminated=terminated, reward=(~first).double())
    e = who.estimate(on_policy(who, data))
    assert e.real.flatten().tolist() == [True, True, False, True, True, False, True]
    assert e.v_target.flatten().tolist() == pytest.approx([1.5, 1, 10, 4, 6, 10, 6])
    real = e.real.flatten()
    assert e.q_target.flatten()[real].tolist() == pytest.approx([1.5, 1, 4, 6, 6])


def test_rows_that_are_not_real_move_nothing():
    """Whatever action and probability stand in the row of a final observation, the gradient is the same."""
    net = network()
    who = learner(net)
    data = batch(length=8, sequences=4, ends=0.4, seed=3)
    between = ~torch.zeros_like(data.first)
    between[:-1] = data.first[1:]  # rows whose action was ignored
    between[-1] = False
    assert between.any()

    def gradients(data: Batch) -> list[Tensor]:
        losses = who.losses(who.estimate(data), data)
        found = torch.autograd.grad(losses.total(), list(net.parameters()), allow_unused=True)
        return [g for g in found if g is not None]

    other = replace(
        data,
        action=torch.where(between, (data.action + 1) % 3, data.action),
        log_mu=torch.where(between.unsqueeze(-1), data.log_mu.flip(-1) - 3.0, data.log_mu),
    )
    for mine, theirs in zip(gradients(data), gradients(other), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("burn_in", [0, 1, 4])
def test_unroll_equals_acting_step_by_step_from_the_stored_state(burn_in):
    net = network()
    who = learner(net, shaping="log")
    data = batch(burn_in=burn_in, ends=0.2, seed=burn_in)
    out = who.unroll(data)
    state = data.state[0]
    for t in range(len(data.reward)):
        one = slice(t, t + 1)
        shaped = SHAPINGS["log"](data.reward[one])
        step = net(data.observation[one], data.first[one], data.previous_action[one], shaped, state)
        state = step.state
        if t >= burn_in:
            torch.testing.assert_close(out.phi[t - burn_in], step.phi[0])
            torch.testing.assert_close(out.value[t - burn_in], step.value[0])
    assert len(out.value) == len(data.reward) - burn_in


def test_burn_in_warms_the_state_up_without_gradient():
    who = learner(network())
    data = batch(burn_in=3)
    observation = data.observation.clone().requires_grad_()
    data = replace(data, frame=observation)
    who.losses(who.estimate(data), data).total().backward()
    assert not observation.grad[:3].any()
    assert observation.grad[3:].any()
    changed = replace(data, frame=torch.cat([observation[:3].detach() + 1.0, observation[3:].detach()]))
    assert not torch.allclose(who.unroll(changed).value, who.unroll(data).value), "but the rows do matter"


def test_each_learner_reads_its_own_state_discount_and_shaping():
    net = network()
    constant_value(net, 0.0)
    data = batch()
    data = replace(data, state=torch.cat([data.state, data.state + 1.0]))
    config = learner(net)._config
    second = Learner(PolicyHyperParameters(1, 0.5, "tanh"), net, config, net.target, target_of(net))
    expected = learner(net, shaping="tanh").unroll(replace(data, state=data.state[1:]))
    torch.testing.assert_close(second.unroll(data).phi, expected.phi)
    e = second.estimate(on_policy(second, data))
    last = SHAPINGS["tanh"](data.reward[-2:])
    torch.testing.assert_close(e.v_target[-2], last[0] + 0.5 * last[1])


@pytest.mark.parametrize(("progress", "discount"), [(0.0, 0.0), (0.25, 0.5), (0.5, 0.75), (1.0, 0.75)])
def test_targets_and_their_bound_follow_a_discount_that_grows(progress, discount):
    net = network()
    constant_value(net, 0.0)
    policy = PolicyHyperParameters(0, 0.75, "identity", first_discount=0.0, ramp=0.5)
    free, bound = (
        Learner(policy, net, learner(net, bound_targets=yes)._config, net.target, target_of(net))
        for yes in (False, True)
    )
    for who in (free, bound):
        who.schedule(progress)
    data = on_policy(free, batch())
    e = free.estimate(data)
    last = data.reward[-2:]
    torch.testing.assert_close(e.v_target[-2], last[0] + discount * last[1])
    assert free.discount == pytest.approx(discount)
    large = replace(data, reward=torch.full_like(data.reward, 2.0))
    limit = 2.0 / (1.0 - discount)
    torch.testing.assert_close(bound._largest_return(large.reward), torch.full_like(last[0, 0], limit))


def test_the_entropy_controlled_target_follows_the_tau_of_its_component():
    """Policy 1 is played by components 1 and 2; its learner follows the first of them."""
    mapping = build_mapping(BehaviorConfig(components=(0, 1)), 2)
    target = build_target(TargetConfig("entropy_controlled"), mapping, 2)
    phi = torch.randn(2, 3, dtype=torch.float64)
    psi = torch.tensor([[9.0, 0.0, 0.5, 0.5], [9.0, 4.0, 0.5, 0.5]], dtype=torch.float64)
    log_pi = target.log_pi(1, phi, psi)
    torch.testing.assert_close(log_pi[0], torch.full((3,), -math.log(3.0), dtype=torch.float64))
    torch.testing.assert_close(log_pi[1], torch.log_softmax(4.0 * phi[1], -1))
    printed = build_target(TargetConfig("printed"), mapping, 2)
    torch.testing.assert_close(printed.log_pi(1, phi, psi), torch.log_softmax(phi, -1))
    shared = build_target(
        TargetConfig("entropy_controlled"), build_mapping(BehaviorConfig(components=(1, 0, 0)), 2), 2
    )
    assert shared.tau_of == (1, 0)


def test_lambda_zero_cuts_both_traces():
    net = network(target=TargetConfig("decoupled", trace_lambda=0.0))
    who = learner(net)
    data = on_policy(who, batch(ends=0.2))
    e = who.estimate(data)
    d = 0.9 * (~data.terminated[1:])
    one_step = (data.reward[1:] + d * e.outputs.value[1:]).detach()
    torch.testing.assert_close(e.v_target[e.real], one_step[e.real])
    torch.testing.assert_close(e.q_target[e.real], one_step[e.real])


def test_without_bootstrap_the_last_value_is_zero():
    net = network(target=TargetConfig("decoupled", bootstrap=False))
    constant_value(net, 7.0)
    who = learner(net)
    data = on_policy(who, batch())
    e = who.estimate(data)
    torch.testing.assert_close(e.v_target[-1], data.reward[-1])
    torch.testing.assert_close(e.q_target[-1], data.reward[-1])
    assert float(e.outputs.value[-1, 0].detach()) == pytest.approx(7.0), "only the target is without it"


def test_transitions_far_from_the_behavior_give_no_policy_gradient():
    net = network(target=TargetConfig("decoupled", kl_threshold=0.5))
    who = learner(net)
    data = on_policy(who, batch())
    far = torch.tensor([0.98, 0.01, 0.01], dtype=torch.float64).log()  # KL(uniform, far) = 2.6 nats
    log_mu = data.log_mu.clone()
    log_mu[2, 0], log_mu[4, 1] = far, far
    data = replace(data, log_mu=log_mu)
    e = who.estimate(data)
    assert (~e.kept).nonzero().tolist() == [[2, 0], [4, 1]]
    assert e.real.all()
    losses = who.losses(e, data)
    (gradient,) = torch.autograd.grad(losses.policy, e.outputs.phi, retain_graph=True)
    assert not gradient[2, 0].any() and not gradient[4, 1].any() and gradient[3, 0].any()
    (gradient,) = torch.autograd.grad(losses.value, e.outputs.value)
    assert gradient[2, 0] != 0, "values are learned from everything"


def test_a_step_may_not_take_pi_further_from_what_it_was():
    """Width 0.2.  Ratio 1.3 may fall but not rise, ratio 0.7 may rise but not fall, 1.1 may do both."""
    ratio = torch.tensor([1.3, 1.3, 0.7, 0.7, 1.1, 1.1])
    advantage = torch.tensor([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    inside = inside_trust_region(ratio.log(), advantage, 0.2)
    assert inside.tolist() == [False, True, False, True, True, True]


def test_transitions_outside_the_trust_region_give_no_policy_gradient():
    """pi uniform over 3; it was 0.2 in one row, which makes the ratio 5/3; all advantages are positive."""
    net = network(target=TargetConfig("decoupled", trust_ratio=0.2, trust_centre="policy"))
    constant_value(net, 0.0)
    nn.init.zeros_(net.logits[-1].weight)
    who = learner(net, discount=0.0)
    data = on_policy(who, batch())
    action, log_pi = data.action, torch.full_like(data.log_pi, math.log(1 / 3))
    log_pi[2, 0] = math.log(0.2)
    data = replace(data, log_pi=log_pi, reward=torch.ones_like(data.reward))
    e = who.estimate(data)
    assert (~e.kept).nonzero().tolist() == [[2, 0]]
    losses = who.losses(e, data)
    (gradient,) = torch.autograd.grad(losses.policy, e.outputs.phi)
    assert not gradient[2, 0].any() and gradient[3, 0].any()
    pi = 1 / 3
    taken = float(gradient[3, 0, action[3, 0]])
    assert taken == pytest.approx(-5.0 * (1 - pi) / e.real.sum()), "a mean over real rows, kept or not"


def test_divergence_by_hand():
    """KL((1/2, 1/2), (1/4, 3/4)) = 1/2 log 2 + 1/2 log 2/3; impossible actions of p count nothing."""
    p, q = torch.tensor([0.5, 0.5, 0.0]).log(), torch.tensor([0.25, 0.75, 0.0]).log()
    assert float(divergence(p, q)) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert float(divergence(p, p)) == 0.0


def test_normalised_advantages_have_mean_zero_and_std_one():
    net = network()
    data = batch(ends=0.2)
    plain, normalised = learner(net), learner(net, normalise_advantage=True)
    e = plain.estimate(data)
    adv = e.advantage[e.real]
    expected = torch.where(
        e.real, (e.advantage - adv.mean()) / (adv.std(correction=0) + 1e-8), torch.zeros_like(e.advantage)
    )
    loss = -5.0 * (e.rho_t * expected * e.log_pi_t).sum() / e.real.sum()
    torch.testing.assert_close(normalised.losses(normalised.estimate(data), data).policy, loss)
    assert not torch.allclose(plain.losses(e, data).policy, loss)


def test_losses_are_scaled_by_their_names():
    net = network()
    data = batch()
    names = {"value": "v_loss_scaling", "q": "q_loss_scaling", "policy": "pi_loss_scaling"}
    names |= {"auxiliary": "auxiliary_scaling", "entropy": "entropy_scaling"}
    ones = learner(net, **dict.fromkeys(names.values(), 1.0))
    base = ones.losses(ones.estimate(data), data).parts()
    for part, key in names.items():
        who = learner(net, **(dict.fromkeys(names.values(), 1.0) | {key: 3.0}))
        found = who.losses(who.estimate(data), data).parts()
        for name in names:
            torch.testing.assert_close(found[name], base[name] * (3.0 if name == part else 1.0))
    assert base["entropy"] < 0, "entropy is a bonus"
    total = ones.losses(ones.estimate(data), data).total()
    torch.testing.assert_close(total, torch.stack(list(base.values())).sum())


@pytest.mark.parametrize("everybodys", [0.0, 0.5])
def test_a_policy_may_have_an_entropy_bonus_of_its_own(everybodys):
    net, data = network(), batch()

    def found(**wishes) -> Tensor:
        who = learner(net, **wishes)
        return who.losses(who.estimate(data), data).entropy

    unit = found(entropy_scaling=1.0)
    torch.testing.assert_close(found(entropy_scaling=everybodys, bonus=0.25), 0.25 * unit)
    torch.testing.assert_close(found(entropy_scaling=everybodys, bonus=0.0), 0.0 * unit)
    torch.testing.assert_close(found(entropy_scaling=everybodys, bonus=None), everybodys * unit)


def test_one_update_by_hand():
    """The first step of Adam moves every weight by lr g / (|g| + eps), after shrinking it by lr decay.

    m / (1 - b1) = g and sqrt(v / (1 - b2)) = |g|; g is scaled to the norm of 0.5 first.
    """
    net = network()
    options = {"learning_rate": 0.01, "weight_decay": 0.1, "clip_norm": 0.5, "adam_epsilon": 1e-3}
    who = learner(net, weight_decay_schedule="constant", **options)
    data = batch()
    loss = who.losses(who.estimate(data), data).total()
    found = torch.autograd.grad(loss, list(net.parameters()))
    norm = math.sqrt(sum(float((g**2).sum()) for g in found))
    assert norm > 0.5
    before = parameters(net)
    who.update(data, progress=0.3)
    assert who.gradient_norm == pytest.approx(norm), "reported before clipping"
    for p, g, after in zip(before, found, net.parameters(), strict=True):
        g = g * 0.5 / norm
        expected = p * (1.0 - 0.01 * 0.1) - 0.01 * g / (g.abs() + 1e-3)
        torch.testing.assert_close(after.detach(), expected, rtol=1e-4, atol=1e-7)
    assert who.updates == 1


@pytest.mark.parametrize("field", ["reward", "frame"])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_non_finite_gradient_ends_training_and_leaves_the_weights(field, poison):
    net = network()
    who = learner(net)
    who.update(batch(seed=1), progress=0.1)
    before = parameters(net)
    data = batch()
    bad = getattr(data, field).clone()
    bad.flatten()[7] = poison
    with pytest.raises(TrainingError, match="non-finite gradient at update 1"):
        who.update(replace(data, **{field: bad}), progress=0.2)
    for p, q in zip(before, net.parameters(), strict=True):
        torch.testing.assert_close(q.detach(), p, rtol=0, atol=0)
    assert who.updates == 1


def test_the_scale_free_reading_tracks_its_scale_with_every_update():
    net = network(target=TargetConfig(policy="scale_free"))
    learner(net).update(batch(), progress=0.5)
    assert float(net.advantage_scale) < 1.0
    other = network(target=TargetConfig(policy="printed"))
    learner(other).update(batch(), progress=0.5)
    assert float(other.advantage_scale) == 1.0


@pytest.mark.parametrize("value_head", ["tied", "own"])
def test_one_batch_can_be_learned_by_heart(value_head):
    """150 updates on one fixed batch, traces cut: the value loss falls to a tenth and less."""
    net = network(target=TargetConfig("decoupled", trace_lambda=0.0), value_head=value_head)
    who = learner(net, learning_rate=5e-3, discount=0.5)
    data = on_policy(who, batch(ends=0.2))
    losses = [float(who.update(data, progress=0.0).value.detach()) for _ in range(150)]
    assert np.mean(losses[-10:]) < 0.1 * losses[0]


def test_the_trust_region_judges_the_advantage_that_the_step_follows():
    """Standardising can turn an advantage's sign; the region must look at the sign after it."""
    net, data = (
        network(target=TargetConfig("decoupled", trust_ratio=0.01, trust_centre="policy")),
        batch(ends=0.2),
    )
    e = learner(net, normalise_advantage=True).estimate(data)
    ratio = (e.log_pi_t - data.log_pi[:-1, :, 0]).exp()
    expected = e.real & torch.where(e.advantage > 0, ratio <= 1.01, ratio >= 0.99)
    assert torch.equal(e.kept, expected)
    raw = learner(net).estimate(data).advantage
    assert (torch.sign(raw) != torch.sign(e.advantage))[e.real].any(), "the case must occur here"


def test_kappa_is_the_inverse_temperature_of_the_target():
    target = build_target(TargetConfig("printed", kappa=10.0), build_mapping(BehaviorConfig(), 1), 1)
    phi, psi = torch.randn(4, 3, dtype=torch.float64), torch.ones(4, 2, dtype=torch.float64)
    torch.testing.assert_close(target.log_pi(0, phi, psi), torch.log_softmax(10.0 * phi, -1))


def test_the_trust_region_can_be_centred_on_the_population():
    """Two policies that gave the action taken 0.5 and 0.1: their even mixture gave it 0.3."""
    net, data = (
        network(target=TargetConfig("decoupled", trust_ratio=0.01, trust_centre="population")),
        batch(ends=0.2),
    )
    said = torch.tensor([0.5, 0.1], dtype=data.log_pi.dtype).log()
    data = replace(data, log_pi=said.expand(*data.log_pi.shape[:2], 2))
    e = learner(net).estimate(data)
    ratio = e.log_pi_t.exp() / 0.3
    assert torch.equal(e.kept, e.real & torch.where(e.advantage > 0, ratio <= 1.01, ratio >= 0.99))
    assert e.kept.any() and not e.kept[e.real].all()


def test_the_trust_region_can_be_centred_on_the_behavior():
    net, data = network(target=TargetConfig("decoupled", trust_ratio=0.01)), batch(ends=0.2)
    e = learner(net).estimate(data)
    ratio = (e.log_pi_t - e.log_mu_t).exp()
    expected = e.real & torch.where(e.advantage > 0, ratio <= 1.01, ratio >= 0.99)
    assert torch.equal(e.kept, expected) and e.kept.any() and not e.kept.all()


def test_targets_are_bounded_by_the_largest_reward_for_ever():
    """A value head that says 1000 with rewards of at most r: no target beyond r / (1 - 0.9) = 10 r."""
    net, data = network(), batch()
    constant_value(net, 1000.0)
    free, bounded = learner(net).estimate(data), learner(net, bound_targets=True).estimate(data)
    bound = 10.0 * float(data.reward[1:].abs().max())
    assert float(free.v_target.abs().max()) > bound
    assert float(bounded.v_target.max()) == pytest.approx(bound)
    assert float(bounded.q_target.max()) == pytest.approx(bound)


def test_centring_ends_when_the_run_is_no_longer_young_and_is_off_by_default():
    for centring in (False, True):
        net = network(centre_observations=centring)
        who = learner(net)
        assert who.still_centring == centring
        who.update(batch(), progress=0.5)
        assert float(net.torso.updates) == float(centring)
        who.updates = CENTRING_BATCHES
        assert not who.still_centring
        who.update(batch(), progress=0.5)
        assert float(net.torso.updates) == float(centring)


def test_an_update_follows_the_mean_of_what_the_heads_read():
    net = network(centre_features=True, head_units=8)
    who, data = learner(net, learning_rate=1e-12, weight_decay=0.0), batch(burn_in=2)
    before = who.estimate(data).outputs
    who.update(data, progress=0.5)
    torch.testing.assert_close(net.features_mean, before.x.detach().mean((0, 1)))  # an average while young
    torch.testing.assert_close(who.estimate(data).outputs.value, before.value)
