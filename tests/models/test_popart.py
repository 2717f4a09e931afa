"""PopArt: the scale of values moves, the values do not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lbc.config import TargetConfig
from lbc.models.popart import MEMORY, PRIOR, SMALLEST
from tests.builders import batch, learner, network

REAL = torch.tensor([[True, True], [True, False]])


def targets(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).reshape(2, 2)


def test_young_statistics_are_averages_that_begin_at_zero_and_one():
    """Targets 1, 2, 6 (one is not real): mean 3, variance 41/3 - 9 = 14/3; (0, 1) counts for 20 updates.

    Then 3, 3, 3: mean (20 * 0 + 3 + 3) / 22, variance (20 * 1 + 14/3 + 0) / 22.
    """
    assert PRIOR == 20
    net = network()
    net.track_values(targets(1, 2, 6, 999), REAL)
    assert float(net.scale.mean) == pytest.approx(3 / 21)
    assert float(net.scale.sigma) == pytest.approx(((20 + 14 / 3) / 21) ** 0.5)
    net.track_values(targets(3, 3, 3, 999), REAL)
    assert float(net.scale.mean) == pytest.approx(6 / 22)
    assert float(net.scale.sigma) == pytest.approx(((20 + 14 / 3) / 22) ** 0.5)


def test_drift_is_not_spread():
    net = network()
    for step in range(3000):
        net.track_values(targets(step, step + 2.0, step, 0), torch.tensor([[True, True], [False, False]]))
    assert float(net.scale.sigma) == pytest.approx(1.0, abs=1e-3)


def test_an_old_scale_moves_slowly():
    net = network()
    net.scale.updates.fill_(1e6)
    net.track_values(targets(5, 5, 5, 5), REAL)
    assert float(net.scale.mean) == pytest.approx(5 * (1 - MEMORY))


def test_rewards_that_never_came_are_not_magnified():
    net = network()
    net.scale.variance.fill_(0.0)
    net.track_values(targets(0, 0, 0, 0), REAL)
    assert float(net.scale.sigma) == pytest.approx(SMALLEST)


def test_a_batch_without_real_transitions_changes_nothing():
    net = network()
    net.track_values(targets(1, 2, 6, 9), REAL)
    before = float(net.scale.mean), float(net.scale.sigma)
    net.track_values(targets(1, 2, 3, 4), torch.zeros(2, 2, dtype=torch.bool))
    assert (float(net.scale.mean), float(net.scale.sigma)) == pytest.approx(before)
    assert all(bool(torch.isfinite(p).all()) for p in net.parameters())


@pytest.mark.parametrize("value_head", ["tied", "own"])
@pytest.mark.parametrize("policy", ["printed", "scale_free", "decoupled"])
@pytest.mark.parametrize("head_units", [0, 5])
def test_no_output_moves_with_the_scale(value_head, policy, head_units):
    target = TargetConfig(policy=policy, scale_free_floor=0.0)
    net = network(target=target, value_head=value_head, head_units=head_units)
    for head in (net.value, net.advantage):
        last = head[-1] if isinstance(head, nn.Sequential) else head
        nn.init.normal_(last.weight)
        nn.init.normal_(last.bias)
    who, data = learner(net), batch()
    before = who.unroll(data)
    for numbers in ((100.0, 300.0, 500.0, 0.0), (-7.0, 2.0, 1.0, 0.0)):
        net.track_values(targets(*numbers), REAL)
        after = who.unroll(data)
        for name in ("phi", "advantage", "value", "value_q"):
            torch.testing.assert_close(getattr(after, name), getattr(before, name))


def test_losses_are_in_units_of_the_scale():
    """Sigma s: squared losses shrink by s^2 and the policy's by s, at equal outputs."""
    net = network()
    who, data = learner(net), batch()
    plain = who.losses(who.estimate(data), data).parts()
    for _ in range(20000):  # until the start is forgotten
        net.scale.track(
            targets(-8, 8, 0, 0), torch.tensor([[True, True], [False, False]]), [net.value], net.advantage
        )
    assert float(net.scale.sigma) == pytest.approx(8.0)
    scaled = who.losses(who.estimate(data), data).parts()
    torch.testing.assert_close(scaled["value"], plain["value"] / 64)
    torch.testing.assert_close(scaled["q"], plain["q"] / 64)
    torch.testing.assert_close(scaled["policy"], plain["policy"] / 8)
    torch.testing.assert_close(scaled["auxiliary"], plain["auxiliary"])


def test_a_learner_tracks_only_if_asked():
    for popart in (True, False):
        net = network()
        learner(net, popart=popart).update(batch(), progress=0.5)
        assert (float(net.scale.updates) == 1.0) == popart
        assert (float(net.scale.sigma) != 1.0) == popart


def test_the_scale_travels_with_the_weights():
    net = network()
    net.track_values(targets(1, 2, 6, 9), REAL)
    copy = network(seed=1)
    copy.load_state_dict(net.state_dict())
    assert float(copy.scale.mean) == float(net.scale.mean) != 0.0
