"""A run watched from outside, until it ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import endurance


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_watches_a_process_until_it_ends():
    says = (
        "x = bytearray(50_000_000); kept = [open('/dev/null') for _ in range(20)]; print(flush=True); input()"
    )
    watched = subprocess.Popen([sys.executable, "-c", says], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert watched.stdout is not None
        watched.stdout.readline()
        moments = endurance.from_outside(watched.pid, 0.2)
        first, second = next(moments), next(moments)
        assert first.memory > 50 and first.descriptors == second.descriptors == 23 and first.processes == 1
        assert 0 < first.seconds < second.seconds and first.frames_per_second is None
    finally:
        watched.kill()
        watched.wait()
    assert list(moments) == [], "it has ended"
