"""Weights on disk, as safetensors: loading them can execute nothing."""

from __future__ import annotations

import os
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor


def save_weights(path: Path, policies: list[dict[str, Tensor]], metadata: dict[str, str]) -> None:
    """One file for all policies, tensors named ``policy.<i>.<name>``; written whole or not at all."""
    tensors = {
        f"policy.{index}.{name}": tensor.contiguous().cpu()
        for index, weights in enumerate(policies)
        for name, tensor in weights.items()
    }
    temporary = path.with_suffix(".tmp")
    save_file(tensors, temporary, metadata)
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_weights(path: Path) -> list[dict[str, Tensor]]:
    """The policies' state dictionaries, in order."""
    policies: dict[int, dict[str, Tensor]] = {}
    for key, tensor in load_file(path).items():
        _, index, name = key.split(".", 2)
        policies.setdefault(int(index), {})[name] = tensor
    return [policies[index] for index in sorted(policies)]
