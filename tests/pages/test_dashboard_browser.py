"""The dashboard in a real browser: whoever has Chromium and playwright sees it work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chromium import CHROMIUM
from lbc.pages.diagnostics import diagnose
from tests.pages.test_dashboard import Served, make_run, report

pytest.importorskip("uvicorn")
pytest.importorskip("plotly")
pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
WAIT = 120_000  # milliseconds; a busy machine needs many for plotly.js


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("browser")
    for name in ("alpha", "beta"):
        make_run(root / name)
    make_run(root / "broken")
    (root / "broken" / "config.toml").write_text("nothing")
    return root


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    served = Served(folder)
    yield served
    served.stop()


@pytest.fixture(scope="module")
def seen(browser: Any, served: Served) -> Iterator[tuple[Any, list[str]]]:
    """The page, and what went wrong in it."""
    page, wrong = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light"), []
    page.set_default_timeout(WAIT)
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((served.address, "data:")) else wrong.append(r.url))
    page.goto(served.address)
    page.wait_for_selector("#score .main-svg")
    yield page, wrong
    page.close()


def drawn(page: Any, chart: str = "score") -> Any:
    """Names, numbers of points and last frames of a chart's lines."""
    look = "id => document.getElementById(id).data?.map(t => [t.name, t.x.length, t.x.at(-1)]) ?? []"
    return page.evaluate(look, chart)


def wait_for(page: Any, condition: str, argument: Any = None) -> None:
    page.wait_for_function(condition, arg=argument, timeout=WAIT)


def choose(page: Any, name: str) -> None:
    page.fill("#search", name)
    page.press("#search", "Enter")
    wait_for(page, "name => document.getElementById('name').textContent.endsWith(name)", name)
    page.fill("#search", "")
    page.focus("#runs")


def test_runs_are_listed_switched_and_compared_by_keys(seen: tuple[Any, list[str]]) -> None:
    page, _ = seen
    assert page.locator("#runs li").count() == 3
    choose(page, "alpha")
    page.keyboard.press("Space")
    wait_for(page, "() => document.querySelectorAll('#runs .tick')[0].textContent !== ''")
    choose(page, "beta")
    wait_for(page, "() => document.getElementById('score').data?.length === 2")
    assert sorted(name for name, _, _ in drawn(page)) == ["alpha", "beta"]
    assert page.locator(".chip").count() == 2
    page.keyboard.press("c")
    wait_for(page, "() => document.getElementById('score').data.length === 1")
    for chart in ("entropy", "responsibility", "lag", "regions", "speed", "time"):
        page.wait_for_selector(f"#{chart} .main-svg", state="attached")
    assert page.locator("#findings li").count() == len(diagnose([]))


def test_a_damaged_run_says_why(seen: tuple[Any, list[str]]) -> None:
    page, _ = seen
    choose(page, "broken")
    page.wait_for_selector("#complaint.damaged")
    assert "config.toml" in page.inner_text("#complaint")


def test_a_new_point_arrives_and_the_zoom_stays(seen: tuple[Any, list[str]], folder: Path) -> None:
    page, _ = seen
    choose(page, "alpha")
    wait_for(page, "() => document.getElementById('score').data?.[0].x.length === 40")
    page.wait_for_selector("#score .nsewdrag", state="attached")
    box = page.locator("#score .nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.mouse.up()
    page.wait_for_selector("#unzoom:not([hidden])")
    ranges = "() => ['score', 'entropy'].map(id => document.getElementById(id)._fullLayout.xaxis.range)"
    zoomed, linked = page.evaluate(ranges)
    assert zoomed[0] > 500 and zoomed[1] < 3500 and linked == zoomed
    with (folder / "alpha" / "metrics.jsonl").open("a") as file:
        file.write(report(4000, 0.99))
    wait_for(page, "() => document.getElementById('score').data[0].x.at(-1) === 4000")
    assert page.evaluate(ranges)[0] == zoomed
    page.focus("#runs")
    page.keyboard.press("r")
    wait_for(page, "() => document.getElementById('score')._fullLayout.xaxis.range[1] >= 4000")


def test_axes_stand_still_while_points_arrive(seen: tuple[Any, list[str]], folder: Path) -> None:
    """plotly.js remembers every label wherever it has been: axes that creep would fill its memory."""
    page, _ = seen
    choose(page, "beta")
    wait_for(page, "() => document.getElementById('score').data?.[0].x.at(-1) === 3900")
    look = """() => [...document.querySelectorAll('.xtick text, .ytick text')].map(
        one => [one.textContent, ...['x', 'y', 'transform'].map(name => one.getAttribute(name))])"""
    before = page.evaluate(look)
    with (folder / "beta" / "metrics.jsonl").open("a") as file:
        file.write(report(3920, 0.5))
    wait_for(page, "() => document.getElementById('score').data[0].x.at(-1) === 3920")
    wait_for(page, "() => document.getElementById('time').data[0].x.at(-1) === 3920")
    assert len(before) > 10 and page.evaluate(look) == before


def test_a_double_click_resets_the_zoom(seen: tuple[Any, list[str]]) -> None:
    page, _ = seen
    box = page.locator("#score .nsewdrag").first.bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.2 * box["height"]
    ranges = "() => ['xaxis', 'yaxis'].map(axis => document.getElementById('score')._fullLayout[axis].range)"
    whole = page.evaluate(ranges)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 0.3 * box["width"], y + 0.4 * box["height"], steps=5)  # both ways
    page.mouse.up()
    page.wait_for_selector("#unzoom:not([hidden])")
    zoomed = page.evaluate(ranges)
    assert zoomed[0] != whole[0] and zoomed[1] != whole[1]
    page.mouse.dblclick(x, y)
    page.wait_for_selector("#unzoom", state="hidden")
    wait_for(
        page,
        "whole => document.getElementById('score')._fullLayout.yaxis.range.join() === whole[1].join()",
        whole,
    )
    assert page.evaluate(ranges) == whole


def test_axis_smoothing_theme_help_and_losses_by_keys(seen: tuple[Any, list[str]]) -> None:
    page, _ = seen
    choose(page, "alpha")
    page.focus("#runs")
    page.keyboard.press("x")
    wait_for(
        page, "() => Math.abs(document.getElementById('score').data.at(-1).x.at(-1) - 4000 / 50 / 60) < 0.01"
    )
    page.keyboard.press("x")
    page.keyboard.press("s")
    wait_for(page, "() => document.getElementById('score').data.length === 2")  # and what it was before
    page.keyboard.press("l")
    page.wait_for_selector("#loss .main-svg", state="attached")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.keyboard.press("t")  # light, as the system is
    page.keyboard.press("t")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(paper) != light
    page.reload()
    page.wait_for_selector("#runs li")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"  # remembered
    wait_for(page, "() => document.getElementById('name').textContent === 'alpha'")  # the address says which
    page.wait_for_selector("#score .main-svg")


def test_a_search_without_a_match_says_so(seen: tuple[Any, list[str]]) -> None:
    page, _ = seen
    page.focus("#runs")
    page.keyboard.press("/")
    page.keyboard.type("no such run")
    assert "No run matches" in page.inner_text("#nothing")
    page.keyboard.press("Escape")
    assert page.locator("#runs li").count() == 3


def test_a_phone_needs_no_sideways_scrolling(seen: tuple[Any, list[str]]) -> None:
    page, _ = seen
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_timeout(500)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 800})


def test_nothing_went_wrong_and_nothing_came_from_elsewhere(seen: tuple[Any, list[str]]) -> None:
    """The last test: what the others have left in the console."""
    _, wrong = seen
    assert wrong == []


def test_an_empty_folder_says_how_to_begin(browser: Any, tmp_path: Path) -> None:
    served = Served(tmp_path)
    page = browser.new_page()
    page.goto(served.address)
    page.wait_for_selector("#nothing:not([hidden])", timeout=WAIT)
    assert "lbc train catch" in page.inner_text("#nothing")
    page.close()
    assert served.stop() == 130


@pytest.mark.slow
def test_a_live_run_is_followed(browser: Any, tmp_path: Path) -> None:
    """A run that begins while the page is open: it appears, and its curve grows."""
    served = Served(tmp_path)
    page = browser.new_page()
    page.goto(served.address)
    command = [
        sys.executable,
        "-m",
        "lbc",
        "train",
        "catch",
        "--out",
        str(tmp_path / "live"),
        "--minutes",
        "5",
    ]
    training = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        page.wait_for_selector("#runs .state.running", timeout=WAIT)
        points = "count => (document.getElementById('score').data?.[0].x.length ?? 0) > count"
        wait_for(page, points, 1)
        count = page.evaluate("() => document.getElementById('score').data[0].x.length")
        wait_for(page, points, count)
    finally:
        training.terminate()
        training.wait(60)
        page.close()
        served.stop()
