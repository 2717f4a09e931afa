"""The report in a real browser, from a file: whoever has Chromium and playwright sees it work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.chromium import CHROMIUM
from lbc.pages.report import write_report
from tests.pages.test_report import make_run

pytest.importorskip("plotly")
pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
WAIT = 120_000  # milliseconds; a busy machine needs many for plotly.js
WAITING = "[...document.querySelectorAll('.chart')].filter(c => c.checkVisibility() && !c.data).length"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("browser")
    for seed in (1, 2):
        make_run(folder / f"a-very-long-name-without-any-space-in-it-{seed}", seed)
    make_run(folder / "other", 1, None, "learner.learning_rate=0.01")
    make_run(folder / "pong", env="ALE/Pong-v5")
    make_run(folder / "early", 3, [])
    write_report([folder], folder / "report.html", video=False)
    return (folder / "report.html").as_uri()


def opened(browser: Any, address: str, width: int, scheme: str = "light") -> tuple[Any, list[str]]:
    """The page, scrolled once to its end, and what went wrong in it."""
    page, wrong = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme), []
    page.set_default_timeout(WAIT)
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else wrong.append(r.url)
    )
    page.goto(address)
    page.wait_for_selector(".chart .main-svg")
    for place in range(0, page.evaluate("document.documentElement.scrollHeight"), 500):
        page.evaluate(f"scrollTo(0, {place})")
        page.wait_for_timeout(30)
    for _ in range(600):  # not wait_for_function: the page's policy forbids to evaluate text
        if not page.evaluate(WAITING):
            return page, wrong
        page.wait_for_timeout(100)
    pytest.fail("some chart was never drawn")


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_goes_wrong_and_nothing_sticks_out(browser: Any, address: str, width: int) -> None:
    page, wrong = opened(browser, address, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = (
        "[...document.querySelectorAll('.chart')].filter(c => c.getBoundingClientRect().right > innerWidth)"
    )
    assert page.evaluate(f"{outside}.length") == 0
    assert not wrong
    page.close()


def test_light_and_dark(browser: Any, address: str) -> None:
    page, wrong = opened(browser, address, 1280, "dark")
    line = "document.querySelector('.chart').data.at(-1).line.color"
    colours = f"[getComputedStyle(document.body).backgroundColor, {line}]"
    dark = page.evaluate(colours)
    page.get_by_role("button", name="Switch to light colours").press("Enter")
    light = page.evaluate(colours)
    assert light[0] == "rgb(255, 255, 255)"
    assert all(one != other for one, other in zip(dark, light, strict=True))
    page.get_by_role("button", name="Switch to dark colours").click()
    assert page.evaluate(colours) == dark
    assert not wrong
    page.close()


def test_the_legend_hides_a_line_by_keys(browser: Any, address: str) -> None:
    page, _ = opened(browser, address, 1280)
    names = "[...document.querySelectorAll('.chart')].find(c => c.dataset.game === '1').data.map(t => t.name)"
    assert "other" in page.evaluate(names)
    buttons = page.get_by_role("button", name="other")
    buttons.first.press("Space")
    assert [button.get_attribute("aria-pressed") for button in buttons.all()] == ["false"] * 3
    assert "other" not in page.evaluate(names)
    page.close()


def test_a_report_is_printed_in_light_colours(browser: Any, address: str, tmp_path: Path) -> None:
    page, wrong = opened(browser, address, 1280, "dark")
    widest = "Math.max(...[...document.querySelectorAll('.chart .main-svg')].map(s => s.clientWidth))"
    on_screen = page.evaluate(widest)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(widest) <= 690  # a sheet of A4
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.wait_for_timeout(500)
    assert page.evaluate(widest) == on_screen
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000
    assert not wrong
    page.close()
