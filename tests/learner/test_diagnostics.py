"""The numbers that a report shows about a policy, where they can be known in advance."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lbc.behavior import build_mapping
from lbc.config import BehaviorConfig
from lbc.learner import Learner, kl_between, kl_of_preferences
from lbc.learner import diagnose as diagnose_estimates
from lbc.types import Batch
from tests.builders import batch, learner, network


def diagnose(who: Learner, data: Batch) -> dict[str, float]:
    return diagnose_estimates(who, data, who.estimate(data))


def test_on_policy_numbers():
    """mu = pi = uniform over 3: no divergence, ratios 1, entropy log 3, the longest trace that is shown."""
    net = network()
    nn.init.zeros_(net.logits[-1].weight)
    who = learner(net)
    data = batch(burn_in=2, ends=0.2)
    data = replace(data, log_mu=torch.full_like(data.log_mu, -math.log(3.0)))
    found = diagnose(who, data)
    assert found["kl_to_behavior"] == pytest.approx(0.0, abs=1e-12)
    assert found["clipped_ratio"] == pytest.approx(1.0)
    assert found["target_entropy"] == pytest.approx(math.log(3.0))
    assert found["kept_share"] == 1.0
    assert found["trace_length"] == pytest.approx(100.0)
    assert found["value_minus_expected_q"] == 0.0, "a tied head has E Q = V"
    shares = [value for name, value in found.items() if name.startswith("gradient_share_")]
    assert sum(shares) == pytest.approx(1.0) and len(shares) == 5
    assert all(math.isfinite(value) for name, value in found.items() if name != "gradient_norm")


def test_value_explained_is_one_where_values_hit_their_targets():
    """Rewards 0 and V = 0 but for one constant: the target's variance is explained or not."""
    who = learner(network(lstm_units=0), discount=0.0)
    data = batch(units=0)
    e = who.estimate(data)
    error = (e.v_target - e.outputs.value[:-1]).detach()
    expected = 1 - float(error.var(correction=0) / e.v_target.var(correction=0))
    found = diagnose(who, data)
    assert found["value_explained"] == pytest.approx(expected)
    assert found["stored_state_influence"] == 0.0, "no memory, no influence"


def test_burn_in_washes_the_stored_state_out():
    who = learner(network())
    influence = [diagnose(who, batch(burn_in=n))["stored_state_influence"] for n in (0, 3, 30)]
    assert influence[0] > influence[1] > influence[2]
    assert influence[2] < 1e-2


def test_diagnosis_changes_nothing():
    net = network()
    who = learner(net)
    data = batch()
    first = diagnose(who, data)
    assert diagnose(who, data)["loss_value"] == first["loss_value"]
    assert all(p.grad is None for p in net.parameters())
    assert who.updates == 0


def test_kl_between_policies():
    """p = (1/2, 1/2), q = (1/4, 3/4): the mean of KL(p, q) and KL(q, p)."""
    p, q = (torch.tensor(x, dtype=torch.float64).log().expand(2, 3, 2) for x in ([0.5, 0.5], [0.25, 0.75]))
    kl_pq = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    kl_qp = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert kl_between([p, q]) == pytest.approx((kl_pq + kl_qp) / 2)
    assert kl_between([p]) == 0.0


def test_kl_of_preferences_with_and_without_the_taus_that_played():
    """A = (0, 0) and (0, log 3): softmax(A) is (1/2, 1/2) and (1/4, 3/4); tau = 0 makes the second even."""
    data = batch()
    e = learner(network()).estimate(data)
    p, q = (torch.tensor(x, dtype=torch.float64).expand(7, 3, 2) for x in ([0.0, 0.0], [0.0, math.log(3.0)]))
    estimates = [replace(e, outputs=replace(e.outputs, phi=x, advantage=x)) for x in (p, q)]
    mapping = build_mapping(BehaviorConfig(), 2)
    kl = kl_between([x.log_softmax(-1) for x in (p, q)])
    for taus, expected in (([5.0, 1.0], kl), ([5.0, 0.0], 0.0)):
        psi = torch.tensor([*taus, 0.5, 0.5], dtype=torch.float64).expand(7, 3, 4)
        found = kl_of_preferences(estimates, mapping, psi)
        assert found["kl_between_components"] == pytest.approx(expected)
        assert found["kl_between_softmax"] == pytest.approx(kl)


def test_a_head_that_is_dead_shows():
    net = network(head_units=16)
    assert diagnose(learner(net), batch())["policy_units_alive"] > 0.3
    with torch.no_grad():
        net.logits[0].bias[:12] -= 100.0
    assert 0.0 < diagnose(learner(net), batch())["policy_units_alive"] <= 0.25
