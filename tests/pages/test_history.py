"""A file of reports as it grows, is cut, breaks and vanishes."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lbc.pages import history as module
from lbc.pages.catalogue import Catalogue
from lbc.pages.history import History, sparkline
from lbc.reporting.rundir import run_directories


def line(frames: int, **more: Any) -> str:
    return json.dumps({"frames": frames, "seconds": frames / 100, "score_mean": frames / 10, **more}) + "\n"


def frames(history: History) -> list[float | None]:
    return history.columns().get("frames", [])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(line(i) for i in range(5)))
    return path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_short_file_is_read_whole_and_followed(path: Path) -> None:
    history = History(path)
    assert history.refresh() and frames(history) == [0, 1, 2, 3, 4]
    assert not history.refresh()
    append(path, line(5))
    assert history.refresh() and frames(history) == [0, 1, 2, 3, 4, 5]


def test_half_a_line_waits_for_its_other_half(path: Path) -> None:
    history, text = History(path), line(5, note="µ" * 9)
    append(path, text[:20])
    history.refresh()
    assert frames(history) == [0, 1, 2, 3, 4]
    append(path, text[20:])
    history.refresh()
    assert frames(history) == [0, 1, 2, 3, 4, 5]


def test_damaged_lines_are_left_out(path: Path) -> None:
    huge = "9" * 400
    with path.open("ab") as file:
        file.write(b'\xff\xfe\n[1, 2]\nnull\n{"frames": "many"}\n' + b"[" * 100_000 + b"\n")
        file.write(f'{{"frames": 7, "updates": {huge}}}\n{{"frames": 8, "score_mean": NaN}}\n'.encode())
    append(path, line(9))
    history = History(path)
    history.refresh()
    assert frames(history) == [0, 1, 2, 3, 4, 8, 9]
    assert history.columns()["score_mean"][5] is None
    assert [report["frames"] for report in history.reports()][-1] == 9


def test_a_file_that_was_cut_is_read_anew(path: Path) -> None:
    """A resumed run cuts its file; it may be longer than before when somebody looks again."""
    history = History(path)
    history.refresh()
    before = history.generation
    kept = "".join(line(i) for i in range(3))
    path.write_text(kept)
    history.refresh()
    assert frames(history) == [0, 1, 2]
    path.write_text(kept + "".join(line(100 + i) for i in range(9)))
    history.refresh()
    assert frames(history) == [0, 1, 2, *range(100, 109)] and history.generation > before
    cut_and_longer = kept + "".join(line(200 + i) for i in range(20))
    path.write_text(cut_and_longer)
    history.refresh()
    assert frames(history) == [0, 1, 2, *range(200, 220)]


def test_a_file_that_vanishes_is_empty_and_may_return(path: Path) -> None:
    history = History(path)
    history.refresh()
    path.unlink()
    assert (
        history.refresh() and history.columns() == {} and history.reports() == [] and history.regions() == []
    )
    assert not history.refresh()
    path.write_text(line(1))
    assert history.refresh() and frames(history) == [1]


def test_a_huge_file_is_sampled_evenly_without_reading_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, count = tmp_path / "metrics.jsonl", 100_000
    path.write_text("".join(line(i, note="x" * 400) for i in range(count)))
    looked_at = []
    real = module.parsed
    monkeypatch.setattr(module, "parsed", lambda text: looked_at.append(len(text)) or real(text))
    history = History(path, points=200)
    history.refresh()
    assert sum(looked_at) < 0.02 * path.stat().st_size
    found = frames(history)
    steps = [b - a for a, b in itertools.pairwise(found)]  # type: ignore[operator]
    assert 200 <= len(found) <= 401 and found[0] == 0 and found[-1] == count - 1
    assert max(steps) <= 1.2 * count / 200
    looked_at.clear()
    append(path, line(count))
    history.refresh()
    assert frames(history)[-1] == count and len(looked_at) < 5


def test_memory_is_bounded_however_long_a_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    history = History(path, points=50)
    for start in range(0, 5000, 20):
        append(path, "".join(line(i) for i in range(start, start + 20)))
        history.refresh()
        assert len(history.kept) <= 100 and frames(history)[-1] == start + 19
    steps = [b.numbers["frames"] - a.numbers["frames"] for a, b in itertools.pairwise(history.kept)]
    assert max(steps) <= 2 * min(steps)


def test_only_what_is_new_is_handed_out(path: Path) -> None:
    history = History(path)
    history.refresh()
    have, generation = len(history.kept), history.generation
    append(path, line(5))
    history.refresh()
    assert history.generation == generation and history.columns(have)["frames"] == [5]


def test_regions_are_shares_and_reports_without_episodes_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    choices = [[1, 3], [0, 0], [2, 2], "broken"]
    reports = [line(i, dimensions=[{"name": "tau_1", "chosen": chosen}]) for i, chosen in enumerate(choices)]
    path.write_text("".join(reports))
    history = History(path)
    history.refresh()
    [dimension] = history.regions()
    assert dimension["name"] == "tau_1" and dimension["regions"] == 2
    assert dimension["frames"] == [0, 2] and dimension["shares"] == [[0.25, 0.75], [0.5, 0.5]]


def test_a_sparkline_has_few_points(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(line(i) for i in range(3000)))
    scores = sparkline(path, points=20)
    assert 20 <= len(scores) <= 40 and scores == sorted(scores)
    assert sparkline(tmp_path / "nothing") == []


def make_run(
    folder: Path, config: str = '[environment]\nid = "catch"\n[run]\nseed = 3\nframes = 50\n'
) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config)
    (folder / "metrics.jsonl").write_text(line(10))
    return folder


def test_runs_are_found_in_folders_but_not_behind_links(tmp_path: Path) -> None:
    inside, outside = make_run(tmp_path / "runs" / "study" / "a"), make_run(tmp_path / "elsewhere")
    (tmp_path / "runs" / "link").symlink_to(outside)
    (tmp_path / "runs" / "foreign").mkdir()
    (tmp_path / "runs" / "foreign" / "config.toml").write_text("x = 1")
    assert list(run_directories(tmp_path / "runs")) == [inside]
    assert list(run_directories(inside)) == [inside]


def test_states_of_runs(tmp_path: Path) -> None:
    """Old files, so that nothing counts as running; a fresh one does."""
    for name in ("finished", "interrupted", "killed", "no_config", "bad_config", "bad_metrics", "running"):
        make_run(tmp_path / name)
    (tmp_path / "finished" / "summary.json").write_text('{"outcome": "finished"}')
    (tmp_path / "interrupted" / "summary.json").write_text('{"outcome": "interrupted"}')
    (tmp_path / "no_config" / "config.toml").unlink()  # somebody else's metrics.jsonl
    (tmp_path / "bad_config" / "config.toml").write_bytes(b"\xff = [")
    (tmp_path / "bad_metrics" / "metrics.jsonl").write_bytes(b"\x00\x01 nothing\n")
    (tmp_path / "killed" / "checkpoints" / "10").mkdir(parents=True)
    for folder in tmp_path.iterdir():
        if folder.name != "running":
            os.utime(folder / "metrics.jsonl", (1e9, 1e9))
    listed = Catalogue([tmp_path]).overview()
    assert listed[0]["name"] == "running"
    found = {run["name"]: run for run in listed}
    assert {name: run["state"] for name, run in found.items()} == {
        "finished": "finished",
        "interrupted": "stopped",
        "killed": "stopped",
        "no_config": "stopped",
        "bad_config": "damaged",
        "bad_metrics": "damaged",
        "running": "running",
    }
    assert "--resume" in found["killed"]["says"] and "--resume" not in found["interrupted"]["says"]
    assert "metrics.jsonl" in found["bad_metrics"]["says"]
    one = found["running"]
    assert (one["game"], one["seed"], one["frames"], one["score"], one["budget"]) == ("catch", 3, 10, 1, 50)


def test_a_lock_says_running_however_old_its_reports_are(tmp_path: Path) -> None:
    from lbc.reporting import RunDirectory

    folder = make_run(tmp_path / "slow")
    os.utime(folder / "metrics.jsonl", (1e9, 1e9))
    if not Path("/proc/locks").exists():
        pytest.skip("locks cannot be seen here")
    catalogue, run = Catalogue([tmp_path]), RunDirectory(folder)
    run.lock()
    assert catalogue.overview()[0]["state"] == "running"
    run.unlock()
    assert catalogue.overview()[0]["state"] == "stopped"


def test_the_catalogue_notices_runs_that_come_and_go_and_forgets_their_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lbc.pages import catalogue as module

    monkeypatch.setattr(module, "_SEARCH_SECONDS", 0.0)
    monkeypatch.setattr(module, "_HISTORIES", 2)
    for name in "abcd":
        make_run(tmp_path / name)
    catalogue = Catalogue([tmp_path])
    ids = {run["name"]: run["id"] for run in catalogue.overview()}
    for name in "abcd":
        catalogue.history(ids[name])
    assert list(catalogue._histories) == [ids["c"], ids["d"]]
    (tmp_path / "d").rename(tmp_path / "e")
    assert {run["name"] for run in catalogue.overview()} == {"a", "b", "c", "e"}
    assert list(catalogue._histories) == [ids["c"]]
    with pytest.raises(KeyError):
        catalogue.history(ids["d"])
