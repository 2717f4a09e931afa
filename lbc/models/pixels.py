"""From bytes to what the first convolution reads, as one kernel: stacked, centred, in bfloat16.

Step by step this writes and reads every observation some ten times, most of them in float32.  With the
kernel, the first 1,000 updates of `atari-fast`'s three learners took 0.64 of the time on an H200.

A convolution of stride 4 reads its images "deep": every block of 4 x 4 pixels is one place with 16 times the
channels, and a kernel of 8 x 8 becomes one of 2 x 2.  It is the same sum, in longer pieces.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from lbc.models import nvrtc
from lbc.models.nvrtc import Launch
from lbc.types import Stack

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


def first_layer(stack: Stack, begin: nn.Module, centre: tuple[Tensor, Tensor] | None) -> Tensor:
    """begin((observation - mean) / spread), with bytes as 0..1: [n, filters, ...].

    centre: mean [4, H, W] and spread [], if the observations are to be centred.
    """
    assert isinstance(begin, nn.Conv2d), "reads() was not asked"
    deep = goes_deep(begin, stack.frame.shape[-2:])
    if centre is None:
        device = stack.frame.device
        centre = torch.zeros(STACK, *stack.frame.shape[-2:], device=device), torch.ones((), device=device)
    x = numbers(stack, *centre, deep)
    if deep:
        return nn.functional.conv2d(x, deep_weight(begin.weight), begin.bias)
    made: Tensor = begin(x)
    return made


def numbers(stack: Stack, mean: Tensor, spread: Tensor, deep: bool) -> Tensor:
    """(observation - mean) / spread in bfloat16, channels last: [n, 4, H, W], or [n, 64, H / 4, W / 4]."""
    frame, since_first = stack.frame.contiguous(), stack.since_first.contiguous()
    (rows, sequences), (height, width) = since_first.shape, frame.shape[-2:]
    block = BLOCK if deep else 1
    shape = (rows * sequences, height // block, width // block, STACK * block * block)
    out = torch.empty(shape, dtype=torch.bfloat16, device=frame.device)
    blocks = -(-rows * sequences * height * width // 4 // THREADS)
    launch = kernel(frame.device)
    assert launch is not None, "reads() was not asked"
    launch(
        blocks,
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
        int(deep),
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


@cache
def kernel(device: torch.device) -> Launch | None:
    """Compiled; None where that is not possible."""
    if torch.version.hip or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    source = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")
    try:
        (launch,) = nvrtc.compiled(source, ("numbers",), [], device)
    except nvrtc.CompileError as error:
        why = str(error).splitlines()[0]
        warnings.warn(f"the pixels' kernel is missing ({why}); slower ones are used.", stacklevel=2)
        return None
    return launch
