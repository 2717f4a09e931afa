"""From bytes to what the first convolution reads, as one kernel: stacked, centred, in bfloat16.

Step by step this writes and reads every observation some ten times, most of them in float32.  With the
kernel, the first 1,000 updates of `atari-fast`'s three learners took 0.64 of the time on an H200.

Tensor cores want more than four channels.  So a convolution of stride 4 reads its images "deep": every block
of 4 x 4 pixels is one place with 16 times the channels, and a kernel of 8 x 8 becomes one of 2 x 2.  It is
the same sum, in longer pieces.  One of 3 x 3 and stride 1 reads blocks of 2 x 2, and says of each what it is
to say of its four pixels, one after the other.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from lbc.models import nvrtc
from lbc.models.nvrtc import Launch
from lbc.types import Stack

Centre = tuple[Tensor, Tensor]  # mean of the observations, spread around it

STACK = 4  # frames
BLOCK = 4  # pixels on a side
THREADS = 256


def reads(stack: Stack, begin: nn.Module) -> bool:
    """Whether the kernel can make what this layer reads, in the types of the moment."""
    frame = stack.frame
    if not (frame.is_cuda and torch.is_autocast_enabled("cuda") and type(begin) is nn.Conv2d):
        return False
    if torch.get_autocast_dtype("cuda") != torch.bfloat16 or frame.dtype != torch.uint8:
        return False
    stacked = stack.depth == STACK - 1 and frame.dim() == 5 and frame.shape[2] == 1
    return stacked and frame.shape[-1] % 4 == 0 and kernel(frame.device) is not None


def first_layer(stack: Stack, begin: nn.Module, centre: Centre | None) -> Tensor:
    """begin((observation - mean) / spread), with bytes as 0..1: [n, filters, ...].

    centre: mean [4, H, W] and spread [], if the observations are to be centred.
    """
    assert isinstance(begin, nn.Conv2d), "reads() was not asked"
    if goes_deep(begin, stack.frame.shape[-2:]):
        return nn.functional.conv2d(numbers(stack, centre, BLOCK), deep_weight(begin.weight), begin.bias)
    made: Tensor = begin(numbers(stack, centre, 1))
    return made


def by_quarters(stack: Stack, begin: nn.Conv2d, centre: Centre | None) -> Tensor:
    """The same without the bias, blocks of 2 x 2 pixels apart: [n, 4 filters, H / 2, W / 2]."""
    return nn.functional.conv2d(numbers(stack, centre, 2), quarters_weight(begin.weight), padding=1)


def numbers(stack: Stack, centre: Centre | None, block: int) -> Tensor:
    """(observation - mean) / spread in bfloat16, channels last: [n, 4 block^2, H / block, W / block]."""
    frame, since_first = stack.frame.contiguous(), stack.since_first.contiguous()
    (rows, sequences), (height, width) = since_first.shape, frame.shape[-2:]
    if centre is None:
        mean = torch.zeros(STACK, height, width, device=frame.device)
        centre = mean, torch.ones((), device=frame.device)
    mean, spread = centre
    shape = (rows * sequences, height // block, width // block, STACK * block * block)
    out = torch.empty(shape, dtype=torch.bfloat16, device=frame.device)
    grid = -(-rows * sequences * height * width // 4 // THREADS)
    launch = kernel(frame.device)
    assert launch is not None, "reads() was not asked"
    launch(
        grid,
        THREADS,
        frame,
        since_first,
        mean.contiguous(),
        spread,
        out,
        rows * sequences,
        sequences,
        height,
        width,
        block,
    )
    return out.movedim(-1, 1)


def goes_deep(layer: nn.Conv2d, size: tuple[int, ...]) -> bool:
    """Whether this layer reads its images deep."""
    plain = layer.stride == (BLOCK, BLOCK) and layer.padding == (0, 0) and layer.dilation == (1, 1)
    return plain and layer.groups == 1 and all(n % BLOCK == 0 for n in (*layer.kernel_size, *size))


def deep_weight(weight: Tensor) -> Tensor:
    """[filters, channels, 4 p, 4 q] -> [filters, 16 channels, p, q], channels last."""
    apart = weight.unflatten(3, (-1, BLOCK)).unflatten(2, (-1, BLOCK))  # [f, c, p, y, q, x]
    deep = apart.permute(0, 3, 5, 1, 2, 4).flatten(1, 3)  # [f, (y, x, c), p, q]
    return deep.contiguous(memory_format=torch.channels_last)


def goes_by_quarters(layer: nn.Module, size: tuple[int, ...]) -> bool:
    """Whether this layer could read its images in blocks of 2 x 2 pixels."""
    if type(layer) is not nn.Conv2d or layer.kernel_size != (3, 3) or layer.padding != (1, 1):
        return False
    plain = layer.stride == (1, 1) and layer.dilation == (1, 1) and layer.groups == 1
    return plain and layer.padding_mode == "zeros" and all(n % 2 == 0 for n in size)


def quarters_weight(weight: Tensor) -> Tensor:
    """[filters, channels, 3, 3] -> [4 filters, 4 channels, 3, 3], channels last."""
    with torch.autocast(weight.device.type, enabled=False):
        taps = weight.flatten(2) @ _quarters(weight.device, weight.dtype)
    apart = taps.unflatten(2, (4, 4, 3, 3)).permute(2, 0, 3, 1, 4, 5)  # [pixel, filter, pixel, channel, ...]
    return apart.flatten(2, 3).flatten(0, 1).contiguous(memory_format=torch.channels_last)


@cache
def _quarters(device: torch.device, dtype: torch.dtype) -> Tensor:
    """[9, pixel of a block that speaks, pixel that it hears, 3 blocks down, 3 across], flat: which of the
    nine weights is between them, if one is."""
    found = torch.zeros(3, 3, 2, 2, 2, 2, 3, 3, dtype=dtype)  # the last four pairs are y and x
    for out, seen, block in itertools.product(range(2), range(2), range(3)):
        tap = 2 * (block - 1) + seen - out + 1
        if tap in range(3):
            found[tap, :, out, :, seen, :, block, :] = 1.0
    both = found * found.permute(1, 0, 3, 2, 5, 4, 7, 6)
    with torch.inference_mode(False):  # actors may ask first, and learners shall keep it for their gradients
        return both.reshape(9, -1).to(device, copy=True)


@cache
def kernel(device: torch.device) -> Launch | None:
    """Compiled; None where that is not possible."""
    found = nvrtc.kernels(Path(__file__).with_suffix(".cu"), ["numbers"], device, (8, 0))
    return None if found is None else found[0]
