"""The kernels of a whole sequence against the literal steps: on a GPU that has clusters, and where there is
a C++ compiler, which builds an emulated one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lbc.models import fused, sequence
from lbc.models.core import RecurrentCore
from tests.models.emulation import built, launcher

HERE = Path(__file__).parent
HAS_CLUSTERS = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)
CLOSE = 2e-2  # of the largest number: products in bfloat16


def emulated(units, folder):
    library = built(HERE / "emulated_sequence.cpp", folder, f"emulated{units}", f"-DUNITS={units}")
    return launcher(library.launch_forward), launcher(library.launch_backward)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("emulated")


def case(steps, batch, units, device="cpu"):
    torch.manual_seed(steps * batch)
    gates = torch.randn(steps, batch, 4 * units, device=device).bfloat16().requires_grad_()
    weight = (torch.randn(4 * units, units, device=device) / units**0.5).bfloat16().requires_grad_()
    first = torch.rand(steps, batch, device=device) < 0.25
    state = torch.randn(2, batch, units, device=device).requires_grad_()
    return gates, weight, first, state


def outcome(call, gates, weight, first, state):
    output, after = call(gates, weight, first, state)
    loss = (output * torch.arange(output.shape[-1], device=output.device).cos()).sum() + after.sin().sum()
    return [output, after, *torch.autograd.grad(loss, [gates, weight, state])]


def ours(gates, weight, first, state):
    order = sequence.by_unit(torch.arange(gates.shape[-1], device=gates.device))
    return sequence.Steps.apply(gates[..., order], weight, first, state)


def literal(gates, weight, first, state):
    return fused.Steps.apply(gates, weight.float(), first, state)


def compare(inputs):
    names = ("output", "state", "by gates", "by weight", "by state")
    for name, found, expected in zip(names, outcome(ours, *inputs), outcome(literal, *inputs), strict=True):
        scale = float(expected.detach().abs().max())
        difference = float((found.float() - expected.float()).detach().abs().max())
        assert difference <= CLOSE * scale, (name, difference, scale)


@pytest.mark.parametrize(
    ("units", "steps", "batch"), [(64, 1, 1), (64, 6, 16), (64, 5, 37), (128, 3, 20), (256, 3, 9)]
)
def test_emulated_kernels_equal_the_literal_steps(units, steps, batch, folder, monkeypatch):
    launchers = emulated(units, folder)
    monkeypatch.setattr(sequence, "kernels", lambda units, device: launchers)
    compare(case(steps, batch, units))


def test_gradients_stop_at_a_reset(folder, monkeypatch):
    """Nothing before it matters for what comes after; in bfloat16, but exactly."""
    launchers = emulated(64, folder)
    monkeypatch.setattr(sequence, "kernels", lambda units, device: launchers)
    gates, weight, _, state = case(4, 2, 64)
    first = torch.zeros(4, 2, dtype=torch.bool)
    first[2, 0] = True
    output, after = ours(gates, weight, first, state)
    by_gates, by_state = torch.autograd.grad(output[2:].sum() + after.sum(), [gates, state])
    assert not by_gates[:2, 0].any() and not by_state[:, 0].any()
    assert by_gates[:2, 1].all() and by_state[:, 1].all()


def test_a_gradient_of_the_state_may_lie_in_memory_as_it_likes(folder, monkeypatch):
    launchers = emulated(64, folder)
    monkeypatch.setattr(sequence, "kernels", lambda units, device: launchers)
    gates, weight, first, state = case(3, 5, 64)
    factor = torch.randn(64, 5, 2)
    found, expected = (
        torch.autograd.grad((call(gates, weight, first, state)[1].permute(2, 1, 0) * factor).sum(), [gates])[
            0
        ]
        for call in (ours, literal)
    )
    assert float((found.float() - expected.float()).abs().max()) <= CLOSE * float(
        expected.float().abs().max()
    )


def test_the_core_s_own_way_to_them(folder, monkeypatch):
    """With emulated kernels: weights in their order, burn-in without gradient, rows that lie apart."""
    launchers = emulated(64, folder)
    torch.manual_seed(0)
    core = RecurrentCore(10, 64)
    x, first = torch.randn(6, 8, 10), torch.rand(6, 8) < 0.2
    state = torch.randn(2, 8, 64)
    apart = x[:, ::2], first[:, ::2], state[:, ::2]

    def outcome():
        with torch.no_grad():
            warm = core(apart[0][:2], apart[1][:2], apart[2])[1]
        output, after = core(apart[0][2:], apart[1][2:], warm)
        loss = output.sin().sum() + after.cos().sum()
        return [output, after, *torch.autograd.grad(loss, list(core.parameters()))]

    expected, used = outcome(), []
    monkeypatch.setattr(sequence, "kernels", lambda units, device: used.append(units) or launchers)
    monkeypatch.setattr(sequence, "plays", lambda units, device: True)
    with torch.autocast("cpu", torch.bfloat16):
        found = outcome()
    assert used
    for a, b in zip(found, expected, strict=True):
        assert float((a.float() - b).norm()) <= CLOSE * float(b.norm())


def test_no_other_size_device_or_type_is_claimed():
    cpu = torch.device("cpu")
    with torch.autocast("cpu", torch.bfloat16):
        assert not sequence.plays(256, cpu)
    if HAS_CLUSTERS:
        cuda = torch.device("cuda", 0)
        assert not sequence.plays(256, cuda)
        with torch.autocast("cuda", torch.bfloat16):
            assert sequence.plays(256, cuda) and not sequence.plays(96, cuda)
        with torch.autocast("cuda", torch.float16):
            assert not sequence.plays(256, cuda)


@pytest.mark.skipif(not HAS_CLUSTERS, reason="no CUDA device with clusters here")
@pytest.mark.parametrize("units", sequence.UNITS)
@pytest.mark.parametrize(("steps", "batch"), [(1, 1), (7, 37), (80, 64), (3, 960)])
def test_kernels_equal_the_literal_steps(units, steps, batch):
    compare(case(steps, batch, units, "cuda"))


@pytest.mark.skipif(not HAS_CLUSTERS, reason="no CUDA device with clusters here")
def test_the_core_uses_them_and_learns_the_same(monkeypatch):
    """Under autocast, against the same core in float32; also as a replayed graph, many times over."""
    torch.manual_seed(0)
    core = RecurrentCore(40, 256).cuda()
    x = torch.randn(50, 24, 40, device="cuda")
    first = torch.rand(50, 24, device="cuda") < 0.05
    state = torch.randn(2, 24, 256, device="cuda")

    used = []
    apply = sequence.Steps.apply
    monkeypatch.setattr(sequence.Steps, "apply", lambda *inputs: used.append(1) or apply(*inputs))

    def gradients():
        output, _ = core(x, first, state)
        return output.detach(), torch.autograd.grad(output.square().mean(), list(core.parameters()))

    expected, slow = gradients()
    with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
        found, fast = gradients()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            again, replayed = gradients()
    assert len(used) == 2
    assert float((found - expected).abs().max()) < CLOSE
    for a, b in zip(fast, slow, strict=True):
        assert float((a - b).abs().max()) <= 2 * CLOSE * float(b.abs().max())
    for _ in range(50):
        graph.replay()
    torch.testing.assert_close(again, found, rtol=0, atol=0)
    for a, b in zip(replayed, fast, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)
