"""The doubling rounds equal the recursion, step by step."""

from __future__ import annotations

import pytest
import torch

from lbc.targets.recursion import sums_from_behind


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7, 8, 9, 40, 80, 129])
def test_equals_the_loop(steps):
    torch.manual_seed(steps)
    a, b = torch.randn(steps, 3, dtype=torch.float64), torch.rand(steps, 3, dtype=torch.float64)
    b[torch.rand(steps, 3) < 0.1] = 0.0  # ends of episodes cut it
    before = a.clone(), b.clone()
    found = sums_from_behind(a, b)
    x = torch.zeros(3, dtype=torch.float64)
    for t in reversed(range(steps)):
        x = a[t] + b[t] * x
        torch.testing.assert_close(found[t], x, rtol=1e-12, atol=1e-12)
    assert torch.equal(a, before[0]) and torch.equal(b, before[1])


def test_nothing_comes_through_a_cut():
    a, b = torch.zeros(6, 1), torch.ones(6, 1)
    a[5], b[2] = 1e30, 0.0
    assert sums_from_behind(a, b).flatten().tolist() == [0.0, 0.0, 0.0, *[float(a[5])] * 3]
