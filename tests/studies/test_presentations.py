"""Every study from real run directories: figures, numbers, findings; and one sentence for what is none."""

from __future__ import annotations

import csv
import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from lbc.behavior import build_space
from lbc.cards import resolve
from lbc.cli import main
from lbc.config import BehaviorConfig
from lbc.studies import ablation, tsne
from lbc.studies.courses import Course, courses, region_name
from lbc.studies.given import panels_given
from lbc.studies.presentation import Canvas


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants of one game, tiny; the first with two seeds (the second has the first one's numbers)."""
    folder = tmp_path_factory.mktemp("runs")
    small = ["--frames", "2000", "--set", "actor.num_envs=8", "run.reports=20", "buffer.batch_size=4"]
    for name, preset in (("main", "catch"), ("shared", "catch+shared-target")):
        assert main(["train", preset, "--out", str(folder / name / "seed1"), *small]) == 0
    shutil.copytree(folder / "main" / "seed1", folder / "main" / "seed2")
    config = folder / "main" / "seed2" / "config.toml"
    config.write_text(config.read_text().replace("seed = 1", "seed = 2"))
    return folder


def study(name: str, *arguments: str | Path) -> int:
    return main(["study", name, *map(str, arguments)])


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_runs_that_differ_in_their_seed_are_one_variant(made: Path) -> None:
    ((game, panel),) = panels_given([made]).items()
    assert game == "catch"
    assert {label: len(paths) for label, paths in panel.items()} == {"main": 2, "shared": 1}
    assert panels_given([made / "main" / "seed1", made / "main"]) == {"catch": {"main": panel["main"]}}


def test_entropy_and_score_of_given_runs(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study("entropy", "--runs", made / "main", made / "shared", "--out", tmp_path) == 0
    text = capsys.readouterr().out
    assert "the behavior's entropy, from the first to the last tenth: that of main" in text
    assert (tmp_path / "entropy" / "entropy.png").read_bytes().startswith(b"\x89PNG")
    reports = [json.loads(line) for line in (made / "main" / "seed1" / "metrics.jsonl").open()]
    rows = [
        r
        for r in rows_of(tmp_path / "entropy" / "entropy.csv")
        if (r["variant"], r["run"]) == ("main", "seed1")
    ]
    found = {int(row["frames"]): row["behavior_entropy"] for row in rows}
    for report in reports:
        if report["behavior_entropy"] is not None:
            assert float(found[report["frames"]]) == report["behavior_entropy"]


def test_kl_of_given_runs(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study("kl", "--runs", made, "--out", tmp_path, "--figure", tmp_path / "x.svg") == 0
    assert "plain softmax: KL between the policies" in capsys.readouterr().out
    assert (tmp_path / "x.svg").stat().st_size > 1000
    assert any(row["kl_between_softmax"] for row in rows_of(tmp_path / "kl" / "kl.csv"))


def test_regions_count_every_episode_once(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made / "main" / "seed1"
    reports = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    for k, course in enumerate(courses([run])[0]):
        expected = np.sum([report["dimensions"][k]["chosen"] for report in reports], axis=0)
        assert course.chosen.sum(1).tolist() == expected.tolist()
        last = [np.nan if x is None else x for x in reports[-1]["dimensions"][k]["mean_return"]]
        np.testing.assert_array_equal(course.mean_return[:, -1], last)
        assert course.late.sum() == pytest.approx(1.0)
    assert study("regions", "--runs", made, "--out", tmp_path) == 0
    assert "| catch: main | tau_1 | 20 |" in capsys.readouterr().out
    assert (tmp_path / "regions" / "regions_2.png").exists()  # the second variant's


def test_chance_makes_no_favourite() -> None:
    dimension = build_space(resolve("catch").behavior, 3).dimensions[0]
    counts = np.random.default_rng(1).multinomial(100, np.full(20, 0.05), size=50)
    even = [Course(dimension, np.arange(2.0), x[:, None], x[:, None], 1.0) for x in counts.astype(float)]
    assert max(course.late.max() for course in even) > 0.1  # twice an even share does happen
    assert not any(course.has_favourite for course in even)
    chosen = np.ones((20, 1))
    chosen[3] = 20.0
    assert Course(dimension, np.arange(2.0), chosen, chosen, 1.0).has_favourite


def test_seeds_that_ended_earlier_are_not_stretched(made: Path, tmp_path: Path) -> None:
    run, half = made / "main" / "seed1", tmp_path / "seed2"
    shutil.copytree(run, half)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (half / "metrics.jsonl").write_text("".join(lines[: len(lines) // 2]))
    whole, part = (dimensions[0] for dimensions in courses([run, half]))
    np.testing.assert_array_equal(whole.edges, part.edges)
    played = int(np.searchsorted(part.edges, json.loads(lines[len(lines) // 2 - 1])["frames"]))
    np.testing.assert_array_equal(part.chosen[:, : played - 1], whole.chosen[:, : played - 1])
    assert not part.chosen[:, played:].any() and np.isnan(part.share[:, played:]).all()
    assert part.late.sum() == pytest.approx(1.0)


def test_regions_are_named_in_real_values() -> None:
    space = build_space(resolve("catch").behavior, 3)
    assert region_name(space.dimensions[0], 0) == "0.00 to 0.11"  # exp(0.1) - 1
    assert region_name(space.dimensions[0], 19) == "5.69 to 6.39"  # exp(1.9) - 1 to exp(2) - 1
    assert region_name(space.dimensions[3], 9) == "0.90 to 1.00"
    selection = build_space(BehaviorConfig(distillation="selection"), 2).dimensions[-1]
    assert region_name(selection, 1) == "(0, 1)"


def test_states_of_two_runs(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(tsne, "STATES", 40)
    assert study("tsne", "--runs", made, "--out", tmp_path) == 0
    assert "nearest neighbour of a state belongs to the same agent" in capsys.readouterr().out
    rows = rows_of(tmp_path / "tsne" / "tsne.csv")
    assert [row["variant"] for row in rows] == ["main"] * 40 + ["shared"] * 40
    assert {float(row["return_to_go"]) for row in rows} <= {-1.0, 0.0, 1.0}
    assert study("tsne", "--runs", made / "shared", "--out", tmp_path) == 2
    assert "compares two runs, but got 1" in capsys.readouterr().err


def test_a_missing_package_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else there(name))
    assert study("tsne", "--out", tmp_path) == 2
    assert (
        "scikit-learn is not installed; install it with: pip install 'lbc[studies]'"
        in capsys.readouterr().err
    )
    assert not list(tmp_path.iterdir())


def test_nearest_neighbours_of_separate_and_of_equal_clouds() -> None:
    rng = np.random.default_rng(0)
    cloud, owner = rng.normal(size=(200, 3)), np.repeat([0, 1], 100)
    assert tsne.neighbours_of_the_same(cloud + 50.0 * owner[:, None], owner) == 1.0
    assert tsne.neighbours_of_the_same(cloud, owner) == pytest.approx(0.5, abs=0.12)
    same = np.zeros((10, 2))  # all states equal: each is nearest to all others
    assert tsne.neighbours_of_the_same(same, np.repeat([0, 1], 5)) == pytest.approx(4 / 9)


def write_run(path: Path, score: float) -> Path:
    path.mkdir(parents=True)
    lines = [{"frames": 100 * i, "seconds": i, "score_mean": score} for i in range(1, 11)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(("main_score", "percent"), [(4.0, ["100.0", "50.0"]), (-4.0, ["", ""])])
def test_the_ablation_is_scaled_to_its_first_variant(
    tmp_path: Path, main_score: float, percent: list[str]
) -> None:
    panels = {
        "Game": {
            "main": [write_run(tmp_path / "a" / f"seed{k}", main_score) for k in (1, 2)],
            "other": [write_run(tmp_path / "b" / f"seed{k}", main_score / 2) for k in (1, 2)],
        }
    }
    shown = ablation.scaled_to_the_first(panels, Canvas(tmp_path / "x.png"))
    assert [path.name for path in shown.figures] == ["x.png", "x_curves.png"]
    assert all(path.exists() for path in shown.figures)
    found = [row["percent_of_first"] for row in shown.rows if row["run"] == "seed1"]
    assert ["" if x is None else str(x) for x in found] == percent
    assert ("in percent of main's mean" in shown.findings) == (main_score > 0)
    assert ("as they are" in shown.findings) == (main_score < 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["regons"], "Did you mean 'regions'"),
        (["toy", "--seeds", "0"], "--seeds is '0'"),
        (["toy", "--seeds", "5-4"], "--seeds is '5-4'"),
        (["toy", "--frames", "many"], "--frames is 'many'"),
        (["toy", "--jobs", "0"], "--jobs is 0"),
        (["toy", "--stale", "maybe"], "--stale is 'maybe'"),
        (["entropy", "--runs", "nowhere"], "'nowhere' is no directory"),
        (["entropy", "--runs", "x", "--frames", "3"], "--runs draws runs as they are"),
        (["ablation", "--draw"], "has finished yet"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study(*arguments, "--out", tmp_path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
    assert not list(tmp_path.iterdir())


def test_what_is_no_run_or_too_little_of_one(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("empty", "foreign", "silent", "archived", "damaged", "odd")
    empty, foreign, silent, archived, damaged, odd = (tmp_path / name for name in names)
    empty.mkdir()
    foreign.mkdir()
    (foreign / "config.toml").write_text("[nothing]\nof = 'ours'\n")
    shutil.copytree(made / "main" / "seed1", silent)
    (silent / "metrics.jsonl").write_text("")
    shutil.copytree(made / "main" / "seed1", archived)
    (archived / "metrics.jsonl").write_text('{"frames": 9, "score_mean": 1.0}\n')
    shutil.copytree(archived, damaged)
    (damaged / "metrics.jsonl").write_text('{"frames": "nine", "score_mean": 1.0}\n')
    shutil.copytree(archived, odd)
    (odd / "metrics.jsonl").write_text(
        '{"frames": 9, "dimensions": ["tau", {"chosen": "all"}, 3, 4, 5, 6]}\n'
    )
    for name, run, sentence in (
        ("regions", empty, "holds no run"),
        ("regions", foreign, "cannot be read today"),
        ("regions", silent, "has no report yet"),
        ("regions", archived, "only its scores were kept"),
        ("regions", odd, "only its scores were kept"),
        ("entropy", damaged, "is damaged"),
        ("kl", archived, "none of these runs has reported divergences"),
    ):
        assert study(name, "--runs", run, "--out", tmp_path / "out") == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert sentence in line
    assert study("tsne", "--runs", made / "main", "--figure", "x.txt", "--out", tmp_path / "out") == 2
    assert "should end in .png" in capsys.readouterr().err
