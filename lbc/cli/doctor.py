"""``lbc doctor``: is everything here that a run needs, and how much of it?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lbc.errors import UserError

GOOD, POOR, MISSING = "ok", "note", "missing"

# package -> (extra that brings it, what it is for)
_OPTIONAL = {
    "minatar": ("minatar", "the MinAtar games"),
    "rich": ("", "the progress display"),
    "tyro": ("", "coloured help"),
    "matplotlib": ("", "learning_curve.png"),
    "tensorboard": ("", "TensorBoard events"),
    "mujoco": ("mujoco", "continuous control"),
    "ray": ("ray", "several machines"),
    "plotly": ("dashboard", "lbc report and lbc dashboard"),
    "starlette": ("dashboard", "lbc dashboard"),
    "sklearn": ("studies", "lbc study tsne"),
    "pandas": ("studies", "lbc.load_run"),
    "av": ("video", "films as MP4"),
    "pygame": ("video", "lbc play --window"),
    "onnx": ("export", "lbc export --format onnx"),
    "wandb": ("wandb", "Weights & Biases"),
    "mlflow": ("mlflow", "MLflow"),
}
_WRITTEN = 64_000_000  # bytes, to measure a disk


@dataclass(frozen=True)
class Finding:
    state: str  # ok | note | missing
    what: str
    text: str


@dataclass(frozen=True)
class Doctor:
    """Check this machine: libraries, device, games, cores, memory, disk; says what is missing.

    Args:
        path: Directory whose disk is measured, by default the present one.
    """

    path: str = "."

    def run(self) -> int:
        if not Path(self.path).is_dir():
            raise UserError(f"'{self.path}' is no directory.")
        findings = examine(Path(self.path))
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            print(f"{finding.state:<8} {finding.what:<{width}}  {finding.text}")
        return 1 if any(finding.state == MISSING for finding in findings) else 0


def examine(path: Path) -> list[Finding]:
    checks: list[Callable[[], list[Finding]]] = [
        _python,
        _torch,
        _games,
        _cores,
        _shared_memory,
        lambda: _disk(path),
        _packages,
    ]
    return [finding for check in checks for finding in check()]


def _python() -> list[Finding]:
    good = (3, 11) <= sys.version_info[:2] <= (3, 13)
    advice = "" if good else "; Python 3.11 to 3.13 is tested"
    return [Finding(GOOD if good else POOR, "python", platform.python_version() + advice)]


def _torch() -> list[Finding]:
    try:
        import torch
    except ImportError:
        return [Finding(MISSING, "torch", "pip install torch")]
    found = [Finding(GOOD, "torch", torch.__version__)]
    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        found.append(Finding(GOOD, "device", f"{torch.cuda.get_device_name()}, {memory:.0f} GiB"))
    elif torch.backends.mps.is_available():
        found.append(Finding(GOOD, "device", "Apple MPS; set run.device=mps"))
    else:
        from lbc.runtime.device import has_bfloat16

        text = "CPU only: presets 'catch' to 'atari-laptop'; 'atari' wants a GPU"
        if has_bfloat16(torch.device("cpu")):
            text += "; this CPU computes in bfloat16, too (run.precision)"
        found.append(Finding(POOR, "device", text))
    return found


def _games() -> list[Finding]:
    try:
        from lbc.environments.atari import games

        count = len(games())
    except ImportError:
        return [Finding(MISSING, "ale-py", "pip install ale-py")]
    version = importlib.metadata.version("ale-py")
    return [Finding(GOOD if count else MISSING, "ale-py", f"{version}, {count} games with their ROMs")]


def _cores() -> list[Finding]:
    from lbc.environments.cores import usable_cores

    usable, there = usable_cores(), os.cpu_count() or 1
    text = f"{usable} usable" + (
        f" of {there}; the rest is beyond this process's quota" if usable < there else ""
    )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    found = [Finding(GOOD if usable > 1 else POOR, "cores", text)]
    if load > usable:
        found.append(Finding(POOR, "load", f"{load:.1f} processes want to run: speed will suffer"))
    return found


def _shared_memory() -> list[Finding]:
    place = Path("/dev/shm")
    if not place.is_dir():
        return []
    free = shutil.disk_usage(place).free / 2**20
    enough = free >= 64
    advice = (
        "" if enough else "; the local runtime needs some 8 KB per Atari environment (docker: --shm-size=1g)"
    )
    return [Finding(GOOD if enough else POOR, "shared memory", f"{free:,.0f} MiB free{advice}")]


def _disk(path: Path) -> list[Finding]:
    free = shutil.disk_usage(path).free / 2**30
    found = [Finding(GOOD if free > 2 else POOR, "disk", f"{free:,.1f} GiB free")]
    try:
        with tempfile.NamedTemporaryFile(dir=path) as file:
            data = os.urandom(2**20)
            begun = time.perf_counter()
            for _ in range(_WRITTEN // 2**20):
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
            speed = _WRITTEN / 1e6 / (time.perf_counter() - begun)
        found.append(Finding(GOOD if speed > 20 else POOR, "disk speed", f"{speed:,.0f} MB/s written"))
    except OSError as error:
        found.append(Finding(MISSING, "disk", f"'{path}' cannot be written ({error.strerror})"))
    return found


def _packages() -> list[Finding]:
    found = []
    for package, (extra, purpose) in _OPTIONAL.items():
        if importlib.util.find_spec(package):
            found.append(Finding(GOOD, package, purpose))
        else:
            command = f"pip install 'lbc[{extra}]'" if extra else f"pip install {package}"
            found.append(Finding(POOR, package, f"not installed; for {purpose}: {command}"))
    return found
