"""One file about runs: what is in it, what it refuses, and that it stays small."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbc.cards import resolve, to_toml
from lbc.cli import main
from lbc.errors import UserError
from lbc.pages.binned import BINS, Binned
from lbc.pages.charts import thinned
from lbc.pages.groups import by_game, differences
from lbc.pages.reading import find_runs
from lbc.pages.report import write_report

pytest.importorskip("plotly")


def reports(count: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "frames": 100 * (i + 1), "seconds": 0.5 * (i + 1), "episodes": 4 * i, "updates": 10 * i,
            "score_mean": i / 10, "behavior_entropy": 1.0, "frames_per_second": 200.0,
            "time": {"environments": 0.2, "inference": 0.3, "storage": 0.1, "learners": 0.3, "reports": 0.1},
            "dimensions": [{"name": "tau_1", "chosen": [i, 1, 2]}], "responsibility": [0.2, 0.3, 0.5],
        }
        for i in range(count)
    ]  # fmt: skip


def make_run(
    path: Path, seed: int = 1, lines: list[Any] | None = None, *sets: str, env: str = "catch"
) -> Path:
    path.mkdir(parents=True)
    (path / "config.toml").write_text(to_toml(resolve("catch", sets, env=env, seed=seed)))
    found = [json.dumps(line) for line in (reports() if lines is None else lines)]
    (path / "metrics.jsonl").write_text("".join(f"{line}\n" for line in found))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "catch-1"
    assert main(["train", "catch", "--frames", "3000", "--seed", "1", "--out", str(path)]) == 0
    return path


def page_of(*paths: Path, out: Path, video: bool = False) -> str:
    write_report(paths, out, video)
    return out.read_text()


def figures(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found
    return list(json.loads(found[1]))


def body(page: str) -> str:
    """What a reader sees, without scripts."""
    return page[page.index("<main>") : page.index("</main>")]


def test_a_real_run_gives_every_part(trained: Path, tmp_path: Path) -> None:
    page = page_of(trained, out=tmp_path / "r.html", video=True)
    kinds = [figure["kind"] for figure in figures(page)]
    assert [kinds.count(kind) for kind in ("lines", "heat", "areas", "bars")] == [3, 6, 1, 1]
    for title in ("Learning curves", "Scores", "Diagnostics", "Who is responsible", "Speed", "Configuration"):
        assert f"{title}<" in page
    assert 'src="data:image/gif;base64,R0lGOD' in page
    assert "policy 1: sqrt, discount 0.997" in page
    assert page.count("plotly.js v") == 1


def test_the_command_says_what_it_wrote(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trained), "--no-video"]) == 0
    assert "report.html: 1 run of catch," in capsys.readouterr().out
    assert (trained / "report.html").exists()


def test_seeds_are_one_group_and_other_settings_another(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make_run(tmp_path / f"base-s{seed}", seed)
    make_run(tmp_path / "fast-s1", 1, None, "learner.learning_rate=0.01")
    (part,), doubled = by_game(find_runs([tmp_path])[0])
    assert [(variant.label, len(variant.runs)) for variant in part.variants] == [("base", 3), ("fast-s1", 1)]
    assert differences(part.variants) == ["learner.learning_rate"]
    assert not doubled
    page = page_of(tmp_path, out=tmp_path / "r.html")
    lines = figures(page)[0]["lines"]
    assert [line["name"] for line in lines] == ["base"] * 4 + ["fast-s1"]
    assert len(lines[3]["low"]) == len(lines[3]["x"])
    assert re.search(r"<code>learner.learning_rate</code></th><td class=\"differs\">", page)


def test_the_same_seed_twice_counts_once(tmp_path: Path) -> None:
    first = make_run(tmp_path / "runs" / "a")
    shutil.copytree(first, tmp_path / "runs" / "b")
    written = write_report([tmp_path / "runs"], tmp_path / "r.html", video=False)
    assert written.runs == 1
    assert "would lie" in written.left_out[0]


def test_games_stand_apart_and_only_atari_has_references(tmp_path: Path) -> None:
    make_run(tmp_path / "pong", env="ALE/Pong-v5")
    make_run(tmp_path / "catch")
    page = body(page_of(tmp_path, out=tmp_path / "r.html"))
    pong, catch = page.split('<h2 id="game-1">')
    assert "0% is chance (-20.7), 100% a human (14.6)" in pong
    assert "human-normalised" not in catch
    assert "no human reference scores" in catch


def test_final_best_and_normalised_scores(tmp_path: Path) -> None:
    make_run(tmp_path / "pong", env="ALE/Pong-v5")
    page = body(page_of(tmp_path, out=tmp_path / "r.html"))
    cells = re.findall(r'<td class="number">([^<]*)</td>', page)
    final = np.mean([i / 10 for i in range(40) if 100 * (i + 1) >= 0.9 * 4000])
    assert cells[:3] == [f"{final:.4g}", "3.9", f"{100 * (final + 20.7) / 35.3:.1f}%"]
    assert cells[3:] == ["4K", "156", "0.01", "200"]


def test_a_run_that_is_still_writing_is_shown(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"frames": 4100, "score_me')
    page = body(page_of(run, out=tmp_path / "r.html"))
    assert "no summary yet" in page
    assert "No film" not in page


def test_archived_runs_have_curves_and_say_what_they_lack(tmp_path: Path) -> None:
    results = Path(__file__).parents[2] / "results" / "minatar-breakout"
    page = page_of(results, out=tmp_path / "r.html", video=True)
    assert "PPO (Stable-Baselines3), 3 seeds" in page
    assert "archived runs keep curves only" in page
    assert "No film: no run of this game has a checkpoint here." in page


def test_runs_in_a_folder_that_cannot_be_read_are_left_out_with_a_word(tmp_path: Path) -> None:
    make_run(tmp_path / "good")
    make_run(tmp_path / "early", 2, [])
    make_run(tmp_path / "broken", 3)
    (tmp_path / "broken" / "config.toml").write_text("[run\n")
    written = write_report([tmp_path], tmp_path / "r.html", video=False)
    assert written.runs == 1
    assert len(written.left_out) == 2
    assert "Left out" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "is no directory"),
        (lambda path: path.mkdir(), "holds no run"),
        (lambda path: (path / "photos").mkdir(parents=True), "holds no run"),
        (lambda path: make_run(path, 1, []), "no reports yet"),
        (lambda path: make_run(path, 1, ["noise", 3, {"a": 1}]), "is damaged"),
        (lambda path: make_run(path, 1, [{"frames": 10, "score_mean": None}]), "no episode has ended yet"),
        (lambda path: (make_run(path) / "config.toml").write_text("[run\n"), "is not valid TOML"),
        (lambda path: (make_run(path) / "config.toml").write_bytes(b"\xff\xfe"), "is not a text file"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(
    make: Any, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "run")
    code = main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "r.html"), "--no-video"])
    error = capsys.readouterr().err
    assert code == 2
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


def test_bad_options_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run")
    (tmp_path / "folder.html").mkdir()
    for words in (
        [],
        [str(run), "--out", "report.pdf"],
        [str(run), "--out", str(tmp_path / "folder.html")],
        [str(run), "--out", str(run / "config.toml" / "r.html")],
    ):
        assert main(["report", *words, "--no-video"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_without_plotly_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UserError, match=r"pip install 'lbc\[dashboard\]'"):
        write_report([make_run(tmp_path / "run")], tmp_path / "r.html")


def test_names_and_values_from_a_disk_are_only_text(tmp_path: Path) -> None:
    run = make_run(tmp_path / "<img src=x onerror=alert(1)>")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('id = "catch"', 'id = "</script><script>alert(1)"'))
    page = page_of(run, out=tmp_path / "r.html")
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert figures(page)[0]["lines"][0]["name"] == "<img src=x onerror=alert(1)>"


def test_code_that_a_run_names_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_game.py").write_text("open('ran', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "run")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('id = "catch"', 'id = "own_game:make"'))
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "weights.safetensors").write_bytes(b"")
    assert "code of your own" in page_of(run, out=tmp_path / "r.html", video=True)
    assert not (tmp_path / "ran").exists()


def test_damaged_weights_only_cost_the_film(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "weights.safetensors").write_bytes(b"nothing")
    assert "No film: " in page_of(run, out=tmp_path / "r.html", video=True)


def test_a_long_run_makes_a_small_page_and_keeps_its_peak(tmp_path: Path) -> None:
    lines = reports(20_000)
    for i, line in enumerate(lines):
        line["score_mean"] = float(np.sin(i))
    lines[12_345]["score_mean"] = 99.0
    run = make_run(tmp_path / "run", 1, lines)
    page = page_of(run, out=tmp_path / "r.html")
    found = figures(page)
    assert 99.0 in found[0]["lines"][0]["y"]
    assert len(json.dumps(found)) < 200_000


def test_thinning_keeps_both_ends_and_both_extremes() -> None:
    x = np.arange(10_000.0)
    y = np.random.default_rng(0).normal(size=10_000)
    few_x, few_y = thinned(x, y, 100)
    assert len(few_x) <= 100
    assert (few_x[0], few_x[-1]) == (0.0, 9999.0)
    assert (few_y.min(), few_y.max()) == (y.min(), y.max())
    assert (np.diff(few_x) > 0).all()


@pytest.mark.parametrize("count", [1, 7, 121, 5000])
def test_bins_lose_nothing_and_stay_few(count: int) -> None:
    binned = Binned(2)
    for i in range(count):
        binned.add(10.0 * (i + 1), np.array([1.0, i]))
    assert len(binned._sums) <= 2 * BINS + 1
    parts = binned.on(np.linspace(0.0, 10.0 * count, 8))
    np.testing.assert_allclose(parts.sum(0), [count, count * (count - 1) / 2])
    np.testing.assert_allclose(parts[:, 0], count / 7, rtol=0.05 if count > 200 else 1e-9)
