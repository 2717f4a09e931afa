"""Residual blocks and pooling, and what lies between their convolutions as one kernel, or two or three back.

Step by step, biases, ReLUs, sums and maxima take a third of a deep torso's time; the kernels in blocks.cu,
compiled when they are first needed, read and write every image once.  They keep bfloat16 between
convolutions, as autocast does, and add in float32.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lbc.models import nvrtc
from lbc.models.initialisation import BRANCH_GAIN, HIDDEN_GAIN, Initialise
from lbc.models.nvrtc import Launch

CHANNELS = 8  # of a thread
MOST_CHANNELS = 256
THREADS = 256
GRID = 1056  # eight for each multiprocessor of an H200; more places than threads come one after the other


class ResidualBlock(nn.Module):
    def __init__(self, channels: int, init: Initialise) -> None:
        super().__init__()
        self.first = init(nn.Conv2d(channels, channels, 3, padding=1), HIDDEN_GAIN)
        self.second = init(nn.Conv2d(channels, channels, 3, padding=1), BRANCH_GAIN)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(torch.relu(self.first(torch.relu(x))))


def halving() -> nn.MaxPool2d:
    return nn.MaxPool2d(3, 2, padding=1)


def play(layers: Sequence[nn.Module], device: torch.device) -> bool:
    """Whether the kernels can play what lies between these layers, in the types of the moment."""
    if device.type != "cuda" or not torch.is_autocast_enabled("cuda"):
        return False
    if torch.get_autocast_dtype("cuda") != torch.bfloat16:
        return False
    deep = any(isinstance(layer, ResidualBlock) for layer in layers)
    known = all(_known(layer, then) for layer, then in itertools.pairwise([*layers, nn.Identity()]))
    return deep and known and kernels(device) is not None


def _known(layer: nn.Module, then: nn.Module) -> bool:
    """Whether `through` computes this layer in front of that one."""
    if isinstance(layer, ResidualBlock):
        return _fits(layer.first.out_channels)
    if isinstance(layer, nn.MaxPool2d):
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        return sizes == (3, 2, 1, 1) and not layer.ceil_mode
    if isinstance(layer, nn.Conv2d):
        return isinstance(then, nn.MaxPool2d) and _fits(layer.out_channels)
    return True


def _fits(channels: int) -> bool:
    groups = channels // CHANNELS
    return channels % CHANNELS == 0 and channels <= MOST_CHANNELS and groups & (groups - 1) == 0


def through(
    layers: Sequence[nn.Module], x: Tensor, bias: Tensor | None = None, quarters: bool = False
) -> Tensor:
    """What the layers make of x.  A convolution's bias waits for the pool behind it, a ReLU comes with a sum.

    bias: of the convolution that made x, if it is still to be added.  quarters: x is [n, 4 channels, H / 2,
    W / 2], blocks of 2 x 2 pixels; then the first layer is a pool.
    """
    grown: Tensor | None = None  # relu(x), where it is known
    for layer in layers:
        if isinstance(layer, nn.MaxPool2d):
            x, grown = _Pool.apply(x, bias, quarters)
            bias, quarters = None, False
        elif isinstance(layer, ResidualBlock):
            inner = _convolved(layer.first, torch.relu(x) if grown is None else grown)
            inner = _convolved(layer.second, _BiasRelu.apply(inner, layer.first.bias))
            x, grown = _AddRelu.apply(x, inner, layer.second.bias)
        elif isinstance(layer, nn.Conv2d):
            x, bias, grown = _convolved(layer, x), layer.bias, None
        elif isinstance(layer, nn.ReLU) and grown is not None:
            x, grown = grown, None
        else:
            x, grown = layer(x), None
    return x


def _convolved(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Without its bias."""
    made: Tensor = layer._conv_forward(x, layer.weight, None)
    return made


class Kernels(NamedTuple):
    bias_relu: Launch
    add_relu: Launch
    pool: Launch
    relu_back: Launch
    pool_back: Launch


@cache
def kernels(device: torch.device) -> Kernels | None:
    """Compiled; None where that is not possible."""
    found = nvrtc.kernels(Path(__file__).with_suffix(".cu"), Kernels._fields, device, (8, 0))
    return None if found is None else Kernels(*found)


class _BiasRelu(torch.autograd.Function):
    """relu(h + bias)"""

    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor) -> Tensor:
        h = _laid_out(h)
        grown = torch.empty_like(h)
        _launcher(h).bias_relu(_grid(h), THREADS, h, bias, grown, *_size(h))
        ctx.save_for_backward(grown)
        return grown

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        (grown,) = ctx.saved_tensors
        return _relu_back(None, grad, grown)


class _AddRelu(torch.autograd.Function):
    """x + h + bias, and its ReLU"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        x, h = _laid_out(x), _laid_out(h)
        total, grown = torch.empty_like(h), torch.empty_like(h)
        _launcher(h).add_relu(_grid(h), THREADS, x, h, bias, total, grown, *_size(h))
        ctx.save_for_backward(grown)
        return total, grown

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_total: Tensor | None, grad_grown: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        (grown,) = ctx.saved_tensors
        grad, grad_bias = _relu_back(grad_total, grad_grown, grown)
        return grad, grad, grad_bias


class _Pool(torch.autograd.Function):
    """max(h) + bias, and its ReLU"""

    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor | None, quarters: bool) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        h = _laid_out(h)
        images, channels, height, width = ctx.shape = h.shape
        if quarters:
            channels, height, width = channels // 4, 2 * height, 2 * width
        shape = (images, (height + 1) // 2, (width + 1) // 2, channels)
        largest, grown = (h.new_empty(shape).movedim(-1, 1) for _ in range(2))
        where = torch.empty(shape, dtype=torch.uint8, device=h.device)
        there = _nothing(h, torch.float32) if bias is None else bias
        size = (images, height, width, channels // CHANNELS, int(quarters))
        _launcher(h).pool(_grid(largest), THREADS, h, there, largest, grown, where, *size)
        ctx.save_for_backward(grown, where)
        ctx.size, ctx.biased = size, bias is not None
        return largest, grown

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_largest: Tensor | None, grad_grown: Tensor | None
    ) -> tuple[Tensor, Tensor | None, None]:
        grown, where = ctx.saved_tensors
        grad, grad_bias = _relu_back(grad_largest, grad_grown, grown)
        found = torch.empty(
            ctx.shape, dtype=grad.dtype, device=grad.device, memory_format=torch.channels_last
        )
        _launcher(grad).pool_back(_grid(found), THREADS, grad, where, found, *ctx.size)
        return found, grad_bias if ctx.biased else None, None


def _relu_back(grad_sum: Tensor | None, grad_grown: Tensor | None, grown: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of a sum that was handed out as it is and as its ReLU, and of the bias in it."""
    nothing = _nothing(grown, grown.dtype)
    given = (nothing if grad is None else _laid_out(grad) for grad in (grad_sum, grad_grown))
    grad, channels = torch.empty_like(grown), grown.shape[1]
    parts = torch.empty(_grid(grown), channels, device=grown.device)
    _launcher(grown).relu_back(len(parts), THREADS, *given, grown, grad, parts, *_size(grown))
    return grad, parts.sum(0)


def _laid_out(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _nothing(like: Tensor, dtype: torch.dtype) -> Tensor:
    """A null pointer for a kernel."""
    return torch.empty(0, dtype=dtype, device=like.device)


def _size(x: Tensor) -> tuple[int, int]:
    return x.numel() // CHANNELS, x.shape[1] // CHANNELS


def _grid(x: Tensor) -> int:
    return min(GRID, -(-x.numel() // CHANNELS // THREADS))


def _launcher(x: Tensor) -> Kernels:
    found = kernels(x.device)
    assert found is not None, "play() was not asked"
    return found
