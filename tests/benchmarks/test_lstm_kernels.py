"""The recurrent core's steps in Triton against those that run everywhere; needs Triton and a GPU."""

from __future__ import annotations

import pytest
import torch

from lbc.models import fused

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@pytest.mark.parametrize("batch", [1, 37, 64, 240])
@pytest.mark.parametrize("dtype, close", [(torch.float32, 5e-3), (torch.bfloat16, 5e-2)])
def test_output_state_and_gradients(batch, dtype, close):
    """float32 products run in TF32, hence the tolerance."""
    from benchmarks import lstm_kernels as kernels

    torch.manual_seed(0)
    steps, units = 7, 128
    gates = torch.randn(steps, batch, 4 * units, device="cuda").to(dtype).requires_grad_()
    weight = (torch.randn(4 * units, units, device="cuda") / units**0.5).to(dtype).requires_grad_()
    first = torch.rand(steps, batch, device="cuda") < 0.2
    state = torch.randn(2, batch, units, device="cuda").requires_grad_()
    in_float32 = weight.detach().float().requires_grad_()
    found, expected = [], []
    for call, w, results in ((kernels.Steps.apply, weight, found), (fused.Steps.apply, in_float32, expected)):
        output, after = call(gates, w, first, state)
        loss = (output * torch.arange(units, device="cuda").cos()).sum() + after.sin().sum()
        results += [output, after, *torch.autograd.grad(loss, [gates, w, state])]
    with torch.no_grad():
        found += kernels.steps(gates.float(), weight, first, state)
    for ours, theirs in zip(found, [*expected, *expected[:2]], strict=True):
        scale = float(theirs.abs().max())
        torch.testing.assert_close(ours.float(), theirs.float(), rtol=close, atol=close * scale)
