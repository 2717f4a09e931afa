"""What figures depend on besides the configuration: command, code, machine and versions."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from lbc import __version__


def machine() -> dict[str, Any]:
    import torch  # whoever only reads runs, as the dashboard does, needs neither

    from lbc.environments.cores import usable_cores
    from lbc.runtime.device import has_bfloat16, select_device

    return {
        "processor": _processor(),
        "usable_cores": usable_cores(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "bfloat16": has_bfloat16(select_device("auto")),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lbc": __version__,
        "commit": _commit(),
        "command": shlex.join(["lbc" if i == 0 else word for i, word in enumerate(sys.argv)]),
    }


def _commit() -> str | None:
    """Of the checkout that this package lies in, with a + where it has been changed since, or of the archive
    that it came in; None elsewhere."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return _archived(Path(__file__).with_name("archived.txt"))

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "lbc")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _archived(mark: Path) -> str | None:
    """What `git archive` wrote into this file; whoever changes the code afterwards may put a + behind it."""
    try:
        found = re.fullmatch(r"([0-9a-f]{12})[0-9a-f]*(\+?)", mark.read_text(encoding="utf-8").strip())
    except OSError:
        return None
    return found[1] + found[2] if found else None


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
