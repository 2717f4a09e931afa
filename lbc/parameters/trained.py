"""The policies that a run has trained, out of its newest checkpoint or else its newest weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor

from lbc.errors import UserError
from lbc.parameters.checkpoint import load_weights
from lbc.parameters.compact import unpack
from lbc.parameters.store import Checkpoint, newest


@dataclass(frozen=True)
class Trained:
    weights: list[dict[str, Tensor]]  # of every policy: a checkpoint's newest, or what an agent was to play
    means: list[list[Tensor]]  # of `PolicyNetwork.numbers` over the last updates; empty where there are none
    checkpoint: Checkpoint | None  # that they come from
    complaints: list[str]  # about newer ones that are damaged


def read_trained(checkpoints: Path) -> Trained:
    """Reads ``DIR/checkpoints``; nothing of it is executed."""
    checkpoint, complaints = newest(checkpoints)
    if checkpoint is not None:
        policies: dict[int, dict[str, Tensor]] = {}
        means: dict[int, dict[int, Tensor]] = {}
        for name, tensor in unpack(checkpoint.tensors, checkpoint.state.get("packed", {})).items():
            place = name.split(".", 4)  # run.learners.<i>.network.<name>, or <i>.optimizer.average.<number>
            if len(place) != 5 or place[:2] != ["run", "learners"]:
                continue
            if place[3] == "network":
                policies.setdefault(int(place[2]), {})[place[4]] = tensor
            elif place[3] == "optimizer" and place[4].startswith("average."):
                means.setdefault(int(place[2]), {})[int(place[4].removeprefix("average."))] = tensor
        if policies:
            ordered = [[kept[k] for k in sorted(kept)] for _, kept in sorted(means.items())]
            return Trained([policies[i] for i in sorted(policies)], ordered, checkpoint, complaints)
    try:
        return Trained(load_weights(checkpoints / "weights.safetensors"), [], checkpoint, complaints)
    except (OSError, SafetensorError, ValueError):
        raise UserError(f"'{checkpoints.parent}' has no weights that can be read yet.") from None
