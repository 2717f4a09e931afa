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
    weights: list[dict[str, Tensor]]  # of every policy
    checkpoint: Checkpoint | None  # that they come from
    complaints: list[str]  # about newer ones that are damaged


def read_trained(checkpoints: Path) -> Trained:
    """Reads ``DIR/checkpoints``; nothing of it is executed."""
    checkpoint, complaints = newest(checkpoints)
    if checkpoint is not None:
        policies: dict[int, dict[str, Tensor]] = {}
        for name, tensor in unpack(checkpoint.tensors, checkpoint.state.get("packed", {})).items():
            place = name.split(".", 4)  # run.learners.<i>.network.<name>
            if len(place) == 5 and place[:2] == ["run", "learners"] and place[3] == "network":
                policies.setdefault(int(place[2]), {})[place[4]] = tensor
        if policies:
            return Trained([policies[i] for i in sorted(policies)], checkpoint, complaints)
    try:
        return Trained(load_weights(checkpoints / "weights.safetensors"), checkpoint, complaints)
    except (OSError, SafetensorError, ValueError):
        raise UserError(f"'{checkpoints.parent}' has no weights that can be read yet.") from None
