"""The kernel that makes observations, against the torso's own steps: on a GPU, and on an emulated one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from lbc.models import pixels
from lbc.models.initialisation import INITIALISATIONS
from lbc.models.torso import Torso
from lbc.types import Stack
from tests.models.emulation import built, launcher

HERE = Path(__file__).parent
CUDA = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)


@pytest.fixture
def emulated(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.getbasetemp()
    launch = launcher(built(HERE / "emulated_pixels.cpp", folder, "emulated_pixels").launch_numbers)
    monkeypatch.setattr(pixels, "kernel", lambda device: launch)


def stack_of(rows, sequences, height, width, device="cpu"):
    torch.manual_seed(rows)
    frame = torch.randint(0, 256, (rows + 3, sequences, 1, height, width), dtype=torch.uint8, device=device)
    since_first = torch.randint(0, 6, (rows, sequences), device=device)
    return Stack(frame, since_first)


def expected(stack, mean, spread):
    """[n, 4, H, W]."""
    x = stack.tensor().flatten(0, 1).double()
    return ((x / 255.0 - mean.double()) / spread.double()).bfloat16()


def unfolded(folded, block, channels=4):
    """[n, channels b^2, h, w] -> [n, channels, b h, b w], pixel by pixel."""
    n, _, h, w = folded.shape
    out = folded.new_zeros(n, channels, block * h, block * w)
    for y in range(block):
        for x in range(block):
            for k in range(channels):
                out[:, k, y::block, x::block] = folded[:, (block * y + x) * channels + k]
    return out


def compare(stack, block):
    frame = stack.frame
    shape, device = (4, *frame.shape[-2:]), frame.device
    mean, spread = torch.rand(shape, device=device), torch.tensor(0.3, device=device)
    found = pixels.numbers(stack, (mean, spread), block)
    assert found.is_contiguous(memory_format=torch.channels_last) and found.dtype == torch.bfloat16
    found = unfolded(found, block)
    torch.testing.assert_close(found, expected(stack, mean, spread), rtol=2**-7, atol=1e-4)


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1, 1, 4, 4), (5, 3, 12, 8), (2, 2, 84, 84)])
def test_emulated_numbers_are_the_stacked_and_centred_frames(shape, block, emulated):
    compare(stack_of(*shape), block)


@pytest.mark.skipif(not CUDA, reason="no CUDA device here")
@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1, 1, 4, 4), (5, 3, 12, 8), (41, 32, 84, 84)])
def test_numbers_are_the_stacked_and_centred_frames(shape, block):
    compare(stack_of(*shape, "cuda"), block)


@pytest.mark.parametrize("layer", [nn.Conv2d(3, 5, 8, 4), nn.Conv2d(2, 4, (4, 8), 4), nn.Conv2d(1, 2, 4, 4)])
def test_a_deep_convolution_is_the_same(layer):
    layer = layer.double()
    x = torch.randn(2, layer.in_channels, 16, 24, dtype=torch.float64)
    assert pixels.goes_deep(layer, (16, 24))
    blocks = x.unflatten(3, (-1, 4)).unflatten(2, (-1, 4))  # [n, c, h, y, w, x]
    deep = blocks.permute(0, 3, 5, 1, 2, 4).flatten(1, 3)
    weight = pixels.deep_weight(layer.weight)
    torch.testing.assert_close(nn.functional.conv2d(deep, weight, layer.bias), layer(x))


@pytest.mark.parametrize("filters, channels", [(3, 2), (16, 4)])
def test_a_convolution_by_quarters_is_the_same(filters, channels):
    layer = nn.Conv2d(channels, filters, 3, padding=1, bias=False).double()
    x = torch.randn(2, channels, 6, 8, dtype=torch.float64)
    assert pixels.goes_by_quarters(layer, (6, 8))
    folded = x.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).permute(0, 3, 5, 1, 2, 4).flatten(1, 3)
    made = nn.functional.conv2d(folded, pixels.quarters_weight(layer.weight), padding=1)
    torch.testing.assert_close(unfolded(made, 2, filters), layer(x))


def test_a_learner_may_follow_an_actor_by_quarters():
    """What is kept of the first call, in inference mode, must serve one that wants gradients."""
    pixels._quarters.cache_clear()
    layer = nn.Conv2d(4, 2, 3, padding=1)
    with torch.inference_mode():
        pixels.quarters_weight(layer.weight)
    pixels.quarters_weight(layer.weight).sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.any()


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 8, 3),
        nn.Conv2d(4, 8, 3, 2, padding=1),
        nn.Conv2d(4, 8, 3, padding=1, groups=2),
        nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular"),
        nn.Flatten(),
    ],
)
def test_other_layers_do_not_go_by_quarters(layer):
    assert not pixels.goes_by_quarters(layer, (48, 48))
    assert not pixels.goes_by_quarters(nn.Conv2d(4, 8, 3, padding=1), (48, 45))


@pytest.mark.parametrize(
    "layer", [nn.Conv2d(4, 8, 3, 1), nn.Conv2d(4, 8, 8, 4, padding=2), nn.Conv2d(4, 8, 6, 4)]
)
def test_other_convolutions_read_plain_images(layer):
    assert not pixels.goes_deep(layer, (84, 84))
    assert not pixels.goes_deep(nn.Conv2d(4, 8, 8, 4), (42, 42))


def torso(kind, centring, device="cpu"):
    torch.manual_seed(0)
    made = Torso(kind, (4, 84, 84), 32, INITIALISATIONS["orthogonal"], centring).to(device)
    made.mean.uniform_()  # also where nobody centres: they may have come with another run's weights
    made.variance.fill_(0.09)
    return made


def outcome(made, observation, device, half=True):
    """Features; what the first layer says, and its gradients under a probe that is linear in it: behind ReLUs
    and maxima a pixel that is rounded the other way would move far more than its share."""
    begin = made.body[0]
    with torch.autocast(device, torch.bfloat16, enabled=half):
        z = made(observation)
        x = made._begin(begin, observation).float()
    torch.manual_seed(1)
    weight, bias = torch.autograd.grad(
        (x * torch.randn(x.shape).to(device)).sum(), [begin.weight, begin.bias]
    )
    return {"z": z.detach().float(), "first layer": x.detach(), "weight": weight, "bias": bias}


def same_features(kind, centring, device):
    """As good as the torso's own steps: as far from float32 as they are."""
    made, stack = torso(kind, centring, device), stack_of(3, 2, 84, 84, device)
    found, plain = outcome(made, stack, device), outcome(made, stack.tensor(), device)
    exact = outcome(made, stack.tensor(), device, half=False)
    assert found["z"].shape == (3, 2, 32)
    for name, expected in exact.items():
        error, usual = ((x[name] - expected).norm() / expected.norm() for x in (found, plain))
        assert float(error) <= 1.5 * float(usual) + 1e-3, name


@pytest.mark.parametrize("kind", ["nature", "residual", "impala"])
@pytest.mark.parametrize("centring", [False, True])
def test_a_torso_makes_the_same_of_a_stack(kind, centring, emulated, monkeypatch):
    asked = []
    monkeypatch.setattr(pixels, "reads", lambda stack, begin: asked.append(1) or True)
    same_features(kind, centring, "cpu")
    assert asked


@pytest.mark.skipif(not CUDA, reason="no CUDA device here")
@pytest.mark.parametrize("kind", ["nature", "residual", "impala"])
@pytest.mark.parametrize("centring", [False, True])
def test_a_torso_makes_the_same_of_a_stack_on_the_device(kind, centring):
    with torch.autocast("cuda", torch.bfloat16):
        assert pixels.reads(stack_of(3, 2, 84, 84, "cuda"), nn.Conv2d(4, 8, 8, 4))
    same_features(kind, centring, "cuda")


def test_nothing_else_is_claimed():
    layer = nn.Conv2d(4, 8, 8, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert not pixels.reads(stack_of(2, 2, 84, 84), layer)
    if CUDA:
        stack = stack_of(2, 2, 84, 84, "cuda")
        assert not pixels.reads(stack, layer)  # not in bfloat16
        with torch.autocast("cuda", torch.bfloat16):
            assert not pixels.reads(stack, nn.Flatten())
            assert not pixels.reads(Stack(stack.frame[1:], stack.since_first), layer)  # a stack of three
            assert not pixels.reads(Stack(stack.frame.float(), stack.since_first), layer)
