"""What lies between deep torsos' convolutions, against plain operations: on a GPU, and on an emulated one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from lbc.models import blocks, pixels
from lbc.models.blocks import Kernels, ResidualBlock, halving
from lbc.models.initialisation import INITIALISATIONS
from lbc.models.torso import Torso
from lbc.types import Stack
from tests.models.emulation import built, launcher
from tests.models.test_pixels import stack_of

HERE = Path(__file__).parent
INIT = INITIALISATIONS["orthogonal"]
CUDA = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)
on_a_device = pytest.mark.skipif(not CUDA, reason="no CUDA device here")


@pytest.fixture
def emulated(tmp_path_factory, monkeypatch):
    library = built(HERE / "emulated_blocks.cpp", tmp_path_factory.getbasetemp(), "emulated_blocks")
    found = Kernels(*(launcher(getattr(library, f"launch_{name}")) for name in Kernels._fields))
    monkeypatch.setattr(blocks, "kernels", lambda device: found)
    monkeypatch.setattr(blocks, "GRID", 3)  # or no thread would have a second place
    library = built(HERE / "emulated_pixels.cpp", tmp_path_factory.getbasetemp(), "emulated_pixels")
    monkeypatch.setattr(pixels, "kernel", lambda device: launcher(library.launch_numbers))


def images(*shape, device="cpu", steps=16):
    """Whole sixteenths, so that sums are exact and many pixels are equal, in this layout."""
    torch.manual_seed(sum(shape))
    x = torch.randint(-steps, steps + 1, shape, device=device) / 16
    return x.bfloat16().contiguous(memory_format=torch.channels_last)


def gradients(made, wanted, probes):
    given = [(y, probe) for y, probe in zip(made, probes, strict=True) if probe is not None]
    return torch.autograd.grad([y for y, _ in given], wanted, [probe for _, probe in given])


SHAPES = [(1, 8, 1, 1), (3, 16, 5, 4), (2, 32, 12, 12), (5, 8, 7, 24)]


def biases(channels, device):
    return (torch.arange(channels, device=device) % 16 / 16 - 0.5).requires_grad_()


def pool_is_a_pool(shape, biased, sent, device="cpu", quarters=False):
    h = images(*shape, device=device).requires_grad_()
    bias = biases(shape[1], device) if biased else None
    given = h
    if quarters:
        given = h.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).permute(0, 3, 5, 1, 2, 4).flatten(1, 3)
    found = blocks._Pool.apply(given, bias, quarters)
    plain, plain_bias = h.detach().double().requires_grad_(), None
    x = halving()(plain)
    if biased:
        plain_bias = bias.detach().double().requires_grad_()
        x = x + plain_bias[:, None, None]
    expected = (x, x.relu())
    probes = [images(*x.shape, device=device, steps=15 + k) if k in sent else None for k in range(2)]
    for x, y in zip(found, expected, strict=True):
        assert x.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(x.double(), y)
    ours = gradients(found, [h] + [bias] * biased, probes)
    theirs = gradients(
        expected, [plain] + [plain_bias] * biased, [p if p is None else p.double() for p in probes]
    )
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=2**-7, atol=1e-6)


def sum_is_a_sum(shape, sent, device="cpu"):
    x, h = (images(*shape, device=device, steps=14 + k).requires_grad_() for k in range(2))
    bias = biases(shape[1], device)
    plain = [p.detach().double().requires_grad_() for p in (x, h, bias)]
    total = plain[0] + plain[1] + plain[2][:, None, None]
    found, expected = blocks._AddRelu.apply(x, h, bias), (total, total.relu())
    probes = [images(*shape, device=device, steps=17 + k) if k in sent else None for k in range(2)]
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a.double(), b)
    ours = gradients(found, [x, h, bias], probes)
    theirs = gradients(expected, plain, [p if p is None else p.double() for p in probes])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=2**-7, atol=1e-6)


def relu_is_a_relu(shape, device="cpu"):
    h, bias = images(*shape, device=device).requires_grad_(), biases(shape[1], device)
    plain, plain_bias = h.detach().double().requires_grad_(), bias.detach().double().requires_grad_()
    found, expected = blocks._BiasRelu.apply(h, bias), (plain + plain_bias[:, None, None]).relu()
    torch.testing.assert_close(found.double(), expected, rtol=2**-8, atol=0)
    probe = images(*shape, device=device, steps=20)
    ours = gradients([found], [h, bias], [probe])
    theirs = gradients([expected], [plain, plain_bias], [probe.double()])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=2**-7, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("biased, sent", [(True, (0, 1)), (True, (1,)), (False, (0,))])
def test_emulated_pooling(shape, biased, sent, emulated):
    pool_is_a_pool(shape, biased, sent)


@pytest.mark.parametrize("shape", [(1, 8, 2, 2), (3, 16, 6, 10)])
def test_emulated_pooling_of_what_lies_by_quarters(shape, emulated):
    pool_is_a_pool(shape, True, (0, 1), quarters=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sent", [(0, 1), (0,), (1,)])
def test_emulated_sums(shape, sent, emulated):
    sum_is_a_sum(shape, sent)


@pytest.mark.parametrize("shape", SHAPES)
def test_emulated_relu(shape, emulated):
    relu_is_a_relu(shape)


@on_a_device
@pytest.mark.parametrize("shape", [*SHAPES, (300, 16, 48, 48), (64, 256, 6, 6)])
def test_kernels(shape):
    for biased, sent in [(True, (0, 1)), (True, (1,)), (False, (0,))]:
        pool_is_a_pool(shape, biased, sent, "cuda")
        if shape[2] % 2 == 0 == shape[3] % 2:
            pool_is_a_pool(shape, biased, sent, "cuda", quarters=True)
    for sent in [(0, 1), (0,), (1,)]:
        sum_is_a_sum(shape, sent, "cuda")
    relu_is_a_relu(shape, "cuda")


@pytest.mark.parametrize("place", range(16))
def test_emulated_not_a_number_stays_one(place, emulated):
    """Nor does its gradient disappear, as in PyTorch: a loss that is not a number must be heard of."""
    h, bias = images(1, 8, 4, 4), torch.zeros(8)
    h[0, 3, place // 4, place % 4] = torch.nan
    assert torch.equal(blocks._Pool.apply(h, bias, False)[1].isnan(), halving()(h.float()).isnan())
    for x in (blocks._BiasRelu.apply(h, bias), *blocks._AddRelu.apply(h, h, bias)):
        assert torch.equal(x.isnan(), h.isnan())
    plain, ones = h.float().requires_grad_(), torch.ones_like(h)
    (expected,) = torch.autograd.grad(plain.relu(), plain, ones.float())
    grad, _ = blocks._relu_back(None, ones, blocks._BiasRelu.apply(h, bias))
    assert torch.equal(grad.float(), expected)


def outcome(torso, observation, device, half=True):
    """Features and the gradients of all weights under one probe."""
    with torch.autocast(device, torch.bfloat16, enabled=half):
        z = torso(observation).float()
    torch.manual_seed(1)
    found = torch.autograd.grad((z * torch.randn(z.shape).to(device)).sum(), list(torso.parameters()))
    return [z.detach(), *found]


def a_torso_stays_what_it_is(kind, observation, device, monkeypatch, centring=True):
    """As far from float32 as it is without the kernels, in features and in gradients."""
    torch.manual_seed(0)
    shape = (4, *(observation.frame if isinstance(observation, Stack) else observation).shape[-2:])
    torso = Torso(kind, shape, 32, INIT, centring).to(device)
    torso.mean.uniform_()
    torso.variance.fill_(0.09)
    with torch.no_grad():
        for layer in torso.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.bias.uniform_(-0.1, 0.1)
        torso.last.bias.fill_(3.0)  # or rounding would take features, and all that follows, to zero
    plainly = observation.tensor() if isinstance(observation, Stack) else observation
    exact = outcome(torso, plainly, device, half=False)
    found = outcome(torso, observation, device)
    monkeypatch.setattr(blocks, "play", lambda layers, device: False)
    plain = outcome(torso, observation, device)  # reads as `found` does: rounding moves maxima
    errors = [
        [float((made - z).norm() / z.norm()) for made, z in zip(of, exact, strict=True)]
        for of in (found, plain)
    ]
    (z, *ours), (usual, *others) = errors
    assert z <= 2.0 * usual + 1e-3, "features"
    assert max(ours) <= 2.0 * max(others) + 0.05, "a pixel that is rounded the other way moves a maximum"


def stack(device):
    return stack_of(3, 2, 44, 48, device)


def tensor(device):
    return stack_of(3, 2, 45, 47, device).tensor()


@pytest.mark.parametrize("kind", ["impala", "residual"])
@pytest.mark.parametrize("observation", [stack, tensor])
@pytest.mark.parametrize("centring", [False, True])
def test_a_torso_stays_what_it_is_on_an_emulated_device(kind, observation, centring, emulated, monkeypatch):
    quarters = []
    through = blocks.through

    def counted(*arguments, **words):
        quarters.append(words.get("quarters", False))
        return through(*arguments, **words)

    monkeypatch.setattr(pixels, "reads", lambda stack, begin: True)
    monkeypatch.setattr(blocks, "play", lambda layers, device: torch.is_autocast_enabled("cpu"))
    monkeypatch.setattr(blocks, "through", counted)
    a_torso_stays_what_it_is(kind, observation("cpu"), "cpu", monkeypatch, centring)
    assert quarters == [kind == "impala" and observation is stack], "played once, and how"


@on_a_device
@pytest.mark.parametrize("kind", ["impala", "residual"])
@pytest.mark.parametrize("observation", [stack, tensor])
def test_a_torso_stays_what_it_is(kind, observation, monkeypatch):
    a_torso_stays_what_it_is(kind, observation("cuda"), "cuda", monkeypatch)


def test_what_the_kernels_are_asked_for():
    layers, device = [halving(), ResidualBlock(16, INIT), nn.ReLU()], torch.device("cuda")
    with torch.autocast("cpu", torch.bfloat16):
        assert not blocks.play(layers, torch.device("cpu"))
    assert not blocks.play(layers, device)  # not in bfloat16
    if CUDA:
        with torch.autocast("cuda", torch.bfloat16):
            assert blocks.play(layers, device)
            assert not blocks.play([nn.ReLU()], device)
            assert not blocks.play([ResidualBlock(12, INIT)], device)
            assert not blocks.play([ResidualBlock(24, INIT)], device)


def test_what_the_kernels_do_not_compute():
    block, pool, relu = ResidualBlock(16, INIT), halving(), nn.ReLU()
    assert blocks._known(pool, block) and blocks._known(block, relu) and blocks._known(relu, relu)
    assert blocks._known(nn.Conv2d(16, 32, 3), pool)
    assert not blocks._known(nn.Conv2d(16, 32, 3), relu)  # its bias would wait in vain
    assert not blocks._known(nn.Conv2d(16, 12, 3), pool)
    assert not blocks._known(nn.MaxPool2d(2), block)
    assert not blocks._known(nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), block)
    assert not blocks._known(ResidualBlock(12, INIT), relu)
