"""Learning rate and weight decay over a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbc.config import LearnerConfig
from lbc.learner import linear_with_warmup, warmup_then_constant
from tests.builders import batch, learner, network
from tests.oracles import schedules


@given(st.integers(0, 40), st.integers(1, 60), st.data())
def test_factors_equal_those_counted_step_by_step(warmup, rest, data):
    total = warmup + rest
    step = data.draw(st.integers(0, total))
    factor = linear_with_warmup(step / total, warmup / total)
    assert factor == pytest.approx(schedules.linear_with_warmup(step, warmup, total), abs=1e-9)
    factor = warmup_then_constant(step / total, warmup / total)
    assert factor == pytest.approx(schedules.warmup_then_constant(step, warmup), abs=1e-9)


def test_corners():
    assert linear_with_warmup(0.0, 0.1) == 0.0
    assert linear_with_warmup(0.1, 0.1) == 1.0
    assert linear_with_warmup(0.55, 0.1) == pytest.approx(0.5)
    assert linear_with_warmup(1.0, 0.1) == 0.0
    assert linear_with_warmup(1.5, 0.1) == 0.0, "a run that overshoots its budget stands still"
    assert linear_with_warmup(0.0, 0.0) == 1.0
    assert warmup_then_constant(0.05, 0.1) == pytest.approx(0.5)
    assert warmup_then_constant(0.9, 0.1) == 1.0


def test_warm_up_keeps_the_paper_s_share_of_any_budget():
    assert LearnerConfig().warmup_fraction == pytest.approx(4000 / 97_656)


def test_the_optimizer_follows_the_schedules():
    """Warm-up over a tenth: at progress 0.05 half the rate; at 0.55 the decay alone has fallen to half."""
    options = {"warmup_steps": 1000, "reference_updates": 10_000, "learning_rate": 0.01, "weight_decay": 0.2}
    who = learner(network(), learning_rate_schedule="constant", weight_decay_schedule="linear", **options)
    told = []
    who._optimizer.schedule = lambda *both: told.append(both)
    for progress, rate, decay in ((0.05, 0.005, 0.1), (0.1, 0.01, 0.2), (0.55, 0.01, 0.1), (1.0, 0.01, 0.0)):
        who.update(batch(), progress)
        assert told[-1] == pytest.approx((rate, decay))


@pytest.mark.parametrize(
    ("schedule", "shares"), [("linear", (1.0, 0.75, 0.0)), ("constant", (1.0, 1.0, 1.0))]
)
def test_the_entropy_bonus_follows_its_schedule(schedule, shares):
    options = {
        "learning_rate": 1e-12,
        "weight_decay": 0.0,
        "warmup_steps": 1000,
    }  # of the learning rate alone
    who = learner(network(), entropy_scaling=0.5, entropy_schedule=schedule, **options)
    plain = learner(network(), entropy_scaling=1.0, **options)
    for progress, share in zip((0.0, 0.25, 1.0), shares, strict=True):
        bonus, whole = (float(x.update(batch(), progress).entropy.detach()) for x in (who, plain))
        assert whole < 0 and bonus == pytest.approx(0.5 * share * whole, rel=1e-6)


def test_nothing_moves_at_the_very_end():
    net = network()
    who = learner(net, learning_rate_schedule="linear", weight_decay_schedule="linear", weight_decay=0.1)
    before = [p.detach().clone() for p in net.parameters()]
    who.update(batch(), progress=1.0)
    assert all(bool((p == q).all()) for p, q in zip(before, net.parameters(), strict=True))
