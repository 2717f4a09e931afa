"""What figures depend on besides the code: the machine, and the versions of what runs on it."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

from lbc import __version__


def machine() -> dict[str, Any]:
    import torch  # whoever only reads runs, as the dashboard does, needs neither

    from lbc.environments.cores import usable_cores

    return {
        "processor": _processor(),
        "usable_cores": usable_cores(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lbc": __version__,
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
