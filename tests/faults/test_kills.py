"""The short version of `make soak`: a few kills of each kind, with everything that the long one checks."""

from __future__ import annotations

import pytest

from tests.faults.soak import kills, workers


@pytest.mark.timeout(900)  # processes that start again and again, on a machine that may be busy
@pytest.mark.parametrize("runtime", ["serial", "local"])
def test_a_run_survives_kills_of_its_main_process(runtime, tmp_path):
    found = kills(runtime, 2, tmp_path, frames=2_000)
    assert found["kills"] == 2


@pytest.mark.filterwarnings("ignore:environment process")
def test_a_run_survives_kills_of_its_workers():
    found = workers(3, frames=25_000, gap=0.5)
    assert found["kills"] == 3
