"""A run of Catch that plays better than chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbc.cli import main


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agents") / "run"
    assert main(["train", "catch", "--frames", "30000", "--out", str(path)]) == 0
    return path
