"""Where reports go besides metrics.jsonl: ``run.sinks`` names TensorBoard, Weights & Biases and MLflow."""

from __future__ import annotations

import importlib.util
import os
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
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


def wanted_sinks(names: Sequence[str]) -> list[tuple[str, str]]:
    """(kind, project) of ``run.sinks``, and of the variable LBC_WANDB, which names a project of W&B.

    TensorBoard is left out where it is not installed; wanting another one without its package is a mistake.
    """
    project = os.environ.get("LBC_WANDB")
    names = [*names, f"wandb:{project}"] if project else names
    found = []
    for name in dict.fromkeys(names):
        kind, _, where = name.partition(":")
        if importlib.util.find_spec(kind):
            found.append((kind, where or "lbc"))
        elif kind != "tensorboard":
            raise missing_extra(kind, kind)
    return found


def make_sinks(names: Sequence[str], tensorboard: Path, run_name: str, config_text: str = "") -> list[Sink]:
    """A sink that fails, such as one without network, is told of once and then left alone."""

    def opened(kind: str, where: str) -> Sink:
        if kind == "wandb":
            return WandbSink(where, run_name, config_text)
        if kind == "mlflow":
            return MlflowSink(where, run_name, config_text)
        return TensorBoardSink(tensorboard)

    return [_Harmless(kind, partial(opened, kind, where)) for kind, where in wanted_sinks(names)]


class _Harmless:
    """Whatever its sink does, training goes on."""

    def __init__(self, kind: str, opened: Callable[[], Sink]) -> None:
        self._kind = kind
        self._sink: Sink | None = None
        self._sink = self._attempt(opened)

    def write(self, metrics: dict[str, Any]) -> None:
        if self._sink is not None:
            self._attempt(partial(self._sink.write, metrics))

    def close(self) -> None:
        if self._sink is not None:
            self._attempt(self._sink.close)

    def _attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            self._sink = None
            told = (str(error).strip().splitlines() or [type(error).__name__])[0]
            warnings.warn(
                f"{self._kind} takes no further report of this run ({told}); training goes on.", stacklevel=2
            )
            return None


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
    def __init__(self, project: str, run_name: str, config_text: str = "") -> None:
        import wandb

        self._run = wandb.init(project=project, name=run_name, config=tomllib.loads(config_text))

    def write(self, metrics: dict[str, Any]) -> None:
        self._run.log(dict(scalars(metrics)), step=int(metrics["frames"]))

    def close(self) -> None:
        self._run.finish()


class MlflowSink:
    """A run of its own, beside any that the process has begun itself."""

    def __init__(self, experiment: str, run_name: str, config_text: str = "") -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # more would hold up training
        import mlflow

        self._client = mlflow.MlflowClient()
        known = self._client.get_experiment_by_name(experiment)
        place = known.experiment_id if known else self._client.create_experiment(experiment)
        self._run = self._client.create_run(place, run_name=run_name).info.run_id
        for section, values in tomllib.loads(config_text).items():
            params = [mlflow.entities.Param(f"{section}.{key}", str(value)) for key, value in values.items()]
            self._client.log_batch(self._run, params=params)

    def write(self, metrics: dict[str, Any]) -> None:
        from mlflow.entities import Metric

        now, step = int(1000 * time.time()), int(metrics["frames"])
        found = [Metric(name, value, now, step) for name, value in scalars(metrics)]
        self._client.log_batch(self._run, metrics=found)

    def close(self) -> None:
        self._client.set_terminated(self._run)


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
