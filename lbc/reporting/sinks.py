"""Where reports go besides metrics.jsonl: TensorBoard where it is installed, W&B where it is asked for."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from lbc.errors import missing_extra
from lbc.reporting.plain import plain

_SINGULAR = {"policies": "policy", "dimensions": "dimension"}
_LONGEST_LIST = 8  # longer lists are histograms; as scalars they would drown the others


class Sink(Protocol):
    """Takes every report once, then is closed."""

    def write(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


def wandb_project() -> str | None:
    """The W&B project that the variable LBC_WANDB names; wanting one without wandb is a mistake."""
    project = os.environ.get("LBC_WANDB")
    if project and not importlib.util.find_spec("wandb"):
        raise missing_extra("wandb", "wandb")
    return project


def make_sinks(tensorboard: Path, run_name: str) -> list[Sink]:
    sinks: list[Sink] = []
    if importlib.util.find_spec("tensorboard"):
        sinks.append(TensorBoardSink(tensorboard))
    project = wandb_project()
    if project:
        sinks.append(WandbSink(project, run_name))
    return sinks


class TensorBoardSink:
    def __init__(self, directory: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(directory))

    def write(self, metrics: dict[str, Any]) -> None:
        for name, value in scalars(metrics):
            self._writer.add_scalar(name, value, global_step=int(metrics["frames"]))

    def close(self) -> None:
        self._writer.close()


class WandbSink:
    def __init__(self, project: str, run_name: str) -> None:
        import wandb

        self._run = wandb.init(project=project, name=run_name)

    def write(self, metrics: dict[str, Any]) -> None:
        self._run.log(dict(scalars(metrics)), step=int(metrics["frames"]))

    def close(self) -> None:
        self._run.finish()


def scalars(metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Every finite number in nested metrics under a path, such as ``policy/0/entropy``."""
    return _scalars("", plain(metrics))


def _scalars(path: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool | int | float):
        yield path, float(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            name = str(_SINGULAR.get(key, key))
            yield from _scalars(f"{path}/{name}" if path else name, item)
    elif isinstance(value, list) and len(value) <= _LONGEST_LIST:
        for index, item in enumerate(value):
            label = item.get("name", index) if isinstance(item, dict) else index
            yield from _scalars(f"{path}/{label}", item)
