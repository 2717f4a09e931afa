"""Would Apple's MPS run it?  No such device is here, but what it lacks is known: float64, and operations
without a kernel for it in torch's own list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from lbc.actor.monitor import ReturnMonitor
from lbc.runtime.run import SerialRun
from tests.builders import catch_config

ANYWHERE = re.compile("MPS|Composite(Im|Ex)plicitAutograd")


def kernels() -> dict[str, tuple[set[str], str | None]]:
    """Operation -> for what it has kernels, and whose kernels it borrows."""
    torchgen = pytest.importorskip("torchgen")
    listed = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    if not listed.exists():
        pytest.skip("this torch does not say for what its operations have kernels")
    found = {}
    for entry in re.split(r"^- func: ", listed.read_text(), flags=re.MULTILINE)[1:]:
        rows = re.search(r"^  dispatch:\n((?: {4}.*\n| *#.*\n)+)", entry, flags=re.MULTILINE)
        keys = re.findall(r"^ {4}([\w, ]+):", rows[1], flags=re.MULTILINE) if rows else []
        borrowed = re.search(r"^  structured_delegate: (\S+)", entry, flags=re.MULTILINE)
        found[entry.split("(")[0]] = (
            {key.strip() for row in keys for key in row.split(",")},
            borrowed[1] if borrowed else None,
        )
    return found


def runs_on_apple(operation: str, listed: dict[str, tuple[set[str], str | None]]) -> bool:
    if operation not in listed:
        return False
    keys, borrowed = listed[operation]
    if borrowed:
        return runs_on_apple(borrowed, listed)
    return not keys or any(ANYWHERE.match(key) for key in keys)  # none: made of other operations


class Watch(TorchDispatchMode):
    """What is called, and what of it sees float64."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: set[str] = set()
        self.doubles: set[str] = set()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        schema = function._schema
        name = ".".join(filter(None, (schema.name.removeprefix("aten::"), schema.overload_name)))
        self.operations.add(name)
        kinds = {
            x.dtype
            for x in torch.utils._pytree.tree_leaves((arguments, options, result))
            if isinstance(x, torch.Tensor)
        }
        if torch.float64 in kinds and name not in ("lift_fresh", "to.device"):  # numbers that come from NumPy
            self.doubles.add(name)
        return result


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {
            "target": {"policy": "scale_free", "trust_ratio": 0.2, "trace_lambda": 0.95},
            "learner": {"popart": True, "normalise_advantage": True, "bound_targets": True, "clip_norm": 0.5},
        },
        {
            "environment": {"id": "MinAtar/Breakout"},
            "model": {"torso": "minatar", "centre_observations": True, "value_head": "own"},
        },
    ],
)
def test_everything_that_a_run_computes_has_a_kernel_there(sections, monkeypatch):
    listed = kernels()
    assert runs_on_apple("convolution", listed) and runs_on_apple("mm", listed)
    assert not runs_on_apple("linalg_eig", listed)
    closes = ReturnMonitor._close

    def on_the_host(self, *told):
        with _disable_current_modes():
            closes(self, *told)

    monkeypatch.setattr(ReturnMonitor, "_close", on_the_host)
    run = SerialRun(catch_config(run={"precision": "float32"}, **sections))
    with torch.autograd.set_multithreading_enabled(False), Watch() as seen:
        while run.experiment.learners[0].updates < 2:
            run.step()
        run.report()
    run.close()
    assert {"mm", "_log_softmax"} <= seen.operations and len(seen.operations) > 80
    assert not seen.doubles
    assert not {name for name in seen.operations if not runs_on_apple(name, listed)}
