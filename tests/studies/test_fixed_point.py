import pytest
import torch

from lbc.studies.fixed_point import at_rest, bandit, catch


@pytest.mark.parametrize("head", ["tied", "own"])
def test_on_policy_the_logits_rest_at_twice_the_true_advantages(head: str) -> None:
    assert bandit(None, head, arms=18, gap=0.3).logits == pytest.approx(0.6, abs=1e-5)


def test_on_policy_all_numbers_are_the_derived_ones() -> None:
    q = torch.tensor([[0.5, -0.2, 0.1, 0.0], [1.0, 0.0, 0.0, -1.0]], dtype=torch.float64)
    rest = at_rest(q, torch.zeros_like(q))
    pi = torch.softmax(2.0 * q, dim=-1)  # A = 2 (Q - V), and V cancels
    value = (pi * q).sum(-1)
    torch.testing.assert_close(rest.log_pi.exp(), pi, atol=1e-5, rtol=0)
    torch.testing.assert_close(rest.value, value, atol=1e-5, rtol=0)
    torch.testing.assert_close(rest.q, value[:, None] + 2.0 * (q - value[:, None]), atol=1e-5, rtol=0)


def test_the_tied_head_shrinks_when_the_behavior_turns_greedy() -> None:
    gaps = [bandit(tau).logits for tau in (1.0, 5.0, 20.0, 54.0)]
    assert gaps == pytest.approx([0.60, 0.383, 0.235, 0.117], abs=2e-3)
    assert bandit(20.0, "own").logits > 0.5


def test_the_reward_scale_decides_how_well_the_target_policy_catches() -> None:
    small, large = catch("sqrt", 0.997, columns=5, steps=6), catch("tanh", 0.99, columns=5, steps=6)
    assert small.target < 0.7 < 0.9 < large.target
    assert min(small.greediest, large.greediest) > 0.99
