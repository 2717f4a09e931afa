"""What importing lbc does to the process, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "5000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "None")],
)
def test_threads_do_not_wait_busily_for_long(given, expected):
    """It counts only where it comes before torch, so that importing lbc must not bring it."""
    code = "import lbc, os, sys; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"
    plain = {k: x for k, x in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [expected, "False"]
