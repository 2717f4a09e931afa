"""Where a run computes, and in which numbers."""

from __future__ import annotations

import torch

from lbc.config import Config
from lbc.errors import UserError


def select_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UserError(
            f"run.device '{name}' cannot be used here ({str(error).splitlines()[0]}); use 'auto' or 'cpu'."
        ) from error
    return device


def precision(config: Config, device: torch.device) -> tuple[torch.dtype, bool]:
    """The type of weights and losses, and whether matrix products and convolutions run in bfloat16.

    Where they do on CUDA, the process may from then on use TF32 for what stays in float32.
    """
    wanted = config.run.precision
    on_cuda = device.type == "cuda"
    # A CPU is left to float32, though it may be slower: seeds of Pong did better (docs/performance.md).
    mixed = wanted == "bfloat16" or (wanted == "auto" and on_cuda and has_bfloat16(device))
    if mixed and on_cuda:
        torch.set_float32_matmul_precision("high")
    return torch.float64 if wanted == "float64" else torch.float32, mixed


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device itself computes in it: all newer NVIDIA GPUs; CPUs with AVX512-BF16, as those with
    AMX are, too."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    asked = getattr(torch.cpu, "_is_avx512_bf16_supported", None)  # the one place where torch tells it
    return device.type == "cpu" and asked is not None and bool(asked())
