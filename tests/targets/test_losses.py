"""Every loss: its value and its gradient, derived by hand; rows that are not real count for nothing."""

from __future__ import annotations

import math

import pytest
import torch

from lbc.targets import (
    entropy_bonus,
    forward_dynamics_loss,
    inverse_dynamics_loss,
    masked_mean,
    policy_loss,
    squared_loss,
)

REAL = torch.tensor([[True, False], [True, True]])  # three real transitions of four


def matrix(a, b, c, d) -> torch.Tensor:
    return torch.tensor([[a, b], [c, d]], dtype=torch.float64)


def test_masked_mean_divides_by_the_real_ones():
    assert float(masked_mean(matrix(1, 100, 2, 6), REAL)) == 3.0
    assert float(masked_mean(matrix(1, 2, 3, 4), torch.zeros(2, 2, dtype=torch.bool))) == 0.0


def test_masked_mean_ignores_what_is_not_a_number():
    assert float(masked_mean(matrix(1, math.nan, 2, 6), REAL)) == 3.0


def test_squared_loss_and_its_gradient():
    """1/2 mean (y - x)^2 over errors (2, -1, 3) = 14/6; d/dx = (x - y) / 3."""
    prediction = matrix(1, 5, 2, 0).requires_grad_()
    target = matrix(3, 50, 1, 3).requires_grad_()
    loss = squared_loss(target, prediction, REAL)
    assert float(loss.detach()) == pytest.approx(14 / 6)
    loss.backward()
    torch.testing.assert_close(prediction.grad, matrix(-2, 0, 1, -3) / 3)
    assert target.grad is None, "a target is a constant"


def test_policy_loss_and_its_gradient_reach_log_pi_alone():
    """Terms rho adv log pi: 0.5 * 2 * -1, 1 * -3 * -2, 0.8 * 1 * -0.5; d/dlog pi = -rho adv / 3."""
    log_pi = matrix(-1, -1, -2, -0.5).requires_grad_()
    rho = matrix(0.5, 9, 1, 0.8).requires_grad_()
    advantage = matrix(2, 9, -3, 1).requires_grad_()
    loss = policy_loss(log_pi, rho, advantage, REAL)
    assert float(loss.detach()) == pytest.approx(-(-1 + 6 - 0.4) / 3)
    loss.backward()
    torch.testing.assert_close(log_pi.grad, -matrix(1, 0, -3, 0.8) / 3)
    assert rho.grad is None and advantage.grad is None


def test_policy_gradient_on_logits():
    """d(-w log softmax(x)_a)/dx_b = w (pi_b - [a = b]): for x = (0, log 3), a = 0, w = 2: (-1.5, 1.5)."""
    logits = torch.tensor([[[0.0, math.log(3.0)]]], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.float64)
    log_pi = torch.log_softmax(logits, -1)[..., 0]
    policy_loss(log_pi, one, 2 * one, one.bool()).backward()
    expected = torch.tensor([[[-1.5, 1.5]]], dtype=torch.float64)
    torch.testing.assert_close(logits.grad, expected)


def test_entropy_and_its_gradient():
    """H of (1/4, 3/4); dH/dx_b = -pi_b (log pi_b + H) for logits x; a masked row gives nothing."""
    logits = torch.tensor([[[0.0, math.log(3.0)]], [[5.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    real = torch.tensor([[True], [False]])
    bonus = entropy_bonus(torch.log_softmax(logits, -1), real)
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert float(bonus.detach()) == pytest.approx(entropy)
    bonus.backward()
    expected = [-p * (math.log(p) + entropy) for p in (0.25, 0.75)]
    torch.testing.assert_close(logits.grad, torch.tensor([[expected], [[0, 0]]], dtype=torch.float64))


def test_inverse_dynamics_is_the_cross_entropy_of_the_action():
    """Logits (0, log 3): -log 1/4 for action 0, -log 3/4 for action 1; gradient (pi - one-hot) / 2."""
    row = [0.0, math.log(3.0)]
    logits = torch.tensor([[row, row], [row, [9.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    action = torch.tensor([[0, 1], [0, 1]])
    real = torch.tensor([[True, True], [False, False]])
    loss = inverse_dynamics_loss(logits, action, real)
    assert float(loss.detach()) == pytest.approx((math.log(4) + math.log(4 / 3)) / 2)
    loss.backward()
    expected = [[[-0.75, 0.75], [0.25, -0.25]], [[0, 0], [0, 0]]]
    torch.testing.assert_close(logits.grad, torch.tensor(expected, dtype=torch.float64) / 2)


def test_forward_dynamics_moves_the_prediction_and_not_the_features():
    """Errors (1, -3) and (2, 0): mean squares 5 and 2; the first z has a mean square of 5, the second of 1/2,
    which counts as 1: loss (5 / 5 + 2) / 2; d/dprediction = 2 error / Z / size / 2 rows."""
    predicted = torch.tensor([[[2.0, 0.0]], [[3.0, 0.0]], [[7.0, 7.0]]], requires_grad=True)
    z = torch.tensor([[[1.0, 3.0]], [[1.0, 0.0]], [[0.0, 0.0]]], requires_grad=True)
    loss = forward_dynamics_loss(predicted, z, torch.tensor([[True], [True], [False]]))
    assert float(loss.detach()) == pytest.approx(1.5)
    loss.backward()
    torch.testing.assert_close(predicted.grad, torch.tensor([[[0.1, -0.3]], [[1.0, 0.0]], [[0.0, 0.0]]]))
    assert z.grad is None


def test_large_features_do_not_pull_harder():
    """A torso and its own prediction, everything a thousand times as large: so is no gradient."""
    torch.manual_seed(0)
    real = torch.ones(3, 2, dtype=torch.bool)
    z, error = torch.randn(4, 2, 8), torch.randn(3, 2, 8)
    norms = []
    for size in (1.0, 30.0, 1000.0):
        predicted = (size * (z[1:] + error)).requires_grad_()
        forward_dynamics_loss(predicted, size * z[1:], real).backward()
        norms.append(float(predicted.grad.norm()))
    assert norms[0] > norms[1] > norms[2]
    assert norms[1] / norms[2] == pytest.approx(1000 / 30, rel=1e-4)  # relative to size: the same pull
