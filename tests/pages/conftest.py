"""A real browser for the tests of pages; without Chromium and playwright they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.chromium import ARGUMENTS, CHROMIUM


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
