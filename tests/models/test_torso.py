"""Torsos: shapes, scaling of images, initial weights, and what does not fit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from lbc.errors import UserError
from lbc.models.blocks import ResidualBlock
from lbc.models.initialisation import keep, orthogonal
from lbc.models.torso import SMALLEST_SPREAD, Torso


@pytest.mark.parametrize(
    "kind, shape",
    [
        ("nature", (4, 84, 84)),
        ("impala", (4, 84, 84)),
        ("residual", (4, 84, 84)),
        ("conv", (4, 42, 42)),
        ("minatar", (6, 10, 10)),
        ("mlp", (7,)),
        ("mlp", (1, 10, 5)),
    ],
)
def test_leading_axes_are_kept_and_features_are_units(kind, shape):
    torso = Torso(kind, shape, 16, orthogonal)
    for lead in ((3,), (2, 3)):
        z = torso(torch.zeros(*lead, *shape))
        assert z.shape == (*lead, 16)
        assert (z >= 0).all()


@pytest.mark.parametrize("kind", ["nature", "residual", "impala", "conv", "minatar", "mlp"])
def test_layers_start_orthogonal_with_their_gains_and_no_bias(kind):
    """W W^T = gain^2 I, or W^T W where a layer widens: sqrt(2) before a ReLU, 1 where none follows."""
    torso = Torso(kind, (4, 42, 42), 32, orthogonal)
    layers = [layer for layer in torso.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    branches = {id(block.second) for block in torso.modules() if isinstance(block, ResidualBlock)}
    entries = {id(x) for x in torso.body if isinstance(x, nn.Conv2d)} if branches else set()
    assert len(layers) >= 2
    for layer in layers:
        gain = 0.1 if id(layer) in branches else 1.0 if id(layer) in entries else math.sqrt(2.0)
        w = layer.weight.detach().flatten(1).double()
        w = w if w.shape[0] <= w.shape[1] else w.t()
        torch.testing.assert_close(w @ w.t(), gain**2 * torch.eye(len(w)).double(), atol=1e-5, rtol=0)
        assert not layer.bias.any()


def test_features_of_deep_torsos_begin_as_large_as_those_of_nature():
    """Or one update, whose size Adam sets, would move their policies many times as far."""
    torch.manual_seed(0)
    coarse = torch.rand(16, 4, 12, 12)
    images = (255 * nn.functional.interpolate(coarse, size=84, mode="bilinear")).to(torch.uint8)
    size = {}
    for kind in ("nature", "residual", "impala"):
        torso = Torso(kind, (4, 84, 84), 512, orthogonal, centring=True)
        for _ in range(200):
            torso.track([images])
        with torch.no_grad():
            size[kind] = float(torso(images).pow(2).mean().sqrt())
    assert 0.6 < size["residual"] / size["nature"] < 1.6
    assert 0.6 < size["impala"] / size["nature"] < 1.6


def test_bytes_become_fractions():
    torso = Torso("minatar", (2, 10, 10), 8, orthogonal)
    image = torch.randint(0, 256, (5, 2, 10, 10), dtype=torch.uint8)
    torch.testing.assert_close(torso(image), torso(image.float() / 255.0))


def test_nature_has_the_layers_of_the_paper():
    torso = Torso("nature", (4, 84, 84), 512, keep)
    layers = [layer for layer in torso.body if isinstance(layer, nn.Conv2d)]
    assert [(x.out_channels, x.kernel_size[0], x.stride[0]) for x in layers] == [
        (32, 8, 4),
        (64, 4, 2),
        (64, 3, 1),
    ]
    assert torso.last.in_features == 64 * 7 * 7 and torso.last.out_features == 512


def test_residual_keeps_small_things_in_place():
    """64 channels on 10 x 10 places in the end, and what the first layer says is added to, not replaced."""
    torso = Torso("residual", (4, 84, 84), 512, keep)
    assert torso.last.in_features == 64 * 10 * 10
    blocks = [layer for layer in torso.body if isinstance(layer, ResidualBlock)]
    assert len(blocks) == 3
    x = torch.randn(1, 64, 20, 20)
    torch.nn.init.zeros_(blocks[0].second.weight)
    torch.nn.init.zeros_(blocks[0].second.bias)
    assert torch.equal(blocks[0](x), x)


def test_torch_initialisation_is_left_alone():
    layer = nn.Linear(4, 4)
    before = layer.weight.detach().clone()
    assert keep(layer, math.sqrt(2)) is layer
    torch.testing.assert_close(layer.weight.detach(), before, rtol=0, atol=0)


@pytest.mark.parametrize(
    "kind, shape, message",
    [
        ("nature", (4,), "needs images.*choose model.torso 'mlp'"),
        ("nature", (4, 10, 10), "larger images"),
        ("residual", (4, 7, 9), "larger images"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(kind, shape, message):
    with pytest.raises(UserError, match=message):
        Torso(kind, shape, 8, orthogonal)


def test_centring_removes_what_every_observation_shows():
    """Pixels of a constant background and one that varies: only the latter is left, at unit spread."""
    torso = Torso("mlp", (1, 2, 2), 8, orthogonal, centring=True)
    images = torch.full((100, 1, 2, 2), 200, dtype=torch.uint8)
    images[::2, 0, 0, 0] = 100
    torso.track([images[:30], images[30:]])
    seen = []
    torso.body[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torso(images)
    (x,) = seen
    assert x[:, 0, 0, 1].abs().max() < 1e-5
    torch.testing.assert_close(
        x[:, 0, 0, 0].abs(), torch.full((100,), 2.0), atol=1e-4, rtol=0
    )  # rms over 4 pixels
    assert set(torso.state_dict()) >= {"mean", "variance"}, "an actor pulls them with the weights"


def test_bytes_go_to_bfloat16_at_once_and_lose_nothing():
    """Under autocast every byte over 255 is the bfloat16 nearest to it, in whatever layout it comes."""
    torso = Torso("minatar", (1, 16, 16), 8, orthogonal)
    image = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    seen = []
    torso.body[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.autocast("cpu", torch.bfloat16):
        torso(image)
        torso(image.contiguous(memory_format=torch.channels_last))
    for x in seen:
        assert torch.equal(x, (image.float() / 255.0).bfloat16())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64])
@pytest.mark.parametrize("kind", ["conv", "impala", "residual"])
def test_a_convolution_centres_as_the_formula_says(kind, dtype):
    """Values and gradients of body((x - mean) / spread), though the images are never centred."""
    shape = (2, 36, 36)
    torch.manual_seed(1)
    torso = Torso(kind, shape, 8, orthogonal, centring=True).double()
    images = torch.randint(0, 256, (3, 5, *shape)).to(dtype)
    torso.track([images])
    number = images.view(15, *shape).double() / (255.0 if dtype == torch.uint8 else 1.0)
    centred = (number - torso.mean) / torso.variance.sqrt().clamp(min=SMALLEST_SPREAD)
    literal = torso.last(torso.body(centred)).relu().view(3, 5, 8)
    weights = torch.randn(3, 5, 8, dtype=torch.float64)
    parameters = list(torso.parameters())
    expected = torch.autograd.grad((weights * literal).sum(), parameters)
    found = torso(images)
    torch.testing.assert_close(found, literal)
    torch.testing.assert_close(torch.autograd.grad((weights * found).sum(), parameters), expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_centring_in_bfloat16_keeps_what_differs_from_the_mean(dtype):
    """A small thing on a bright screen: bfloat16 has three digits of the screen's light."""
    shape = (2, 36, 36)
    torch.manual_seed(1)
    torso = Torso("conv", shape, 8, orthogonal, centring=True)
    images = torch.randint(200, 256, shape).expand(20, *shape).clone()
    images[:, :, 10:20, 10:20] += torch.randint(-3, 0, (20, 2, 10, 10))
    images = images.to(dtype)
    torso.track([images])
    before, first = images.clone(), torso.body[0]
    unit = 255.0 if dtype == torch.uint8 else 1.0
    literal = first((images.float() / unit - torso.mean) / torso.variance.sqrt().clamp(min=SMALLEST_SPREAD))
    with torch.autocast("cpu", torch.bfloat16):
        found = torso._begin(first, images)
    assert found.dtype == torch.bfloat16
    assert torch.equal(images, before)
    error = (found.float() - literal).square().mean().sqrt() / literal.std()
    assert error < 0.01
