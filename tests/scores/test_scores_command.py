from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lbc.cli import main
from lbc.cli.parsing import _by_argparse, _by_tyro
from lbc.cli.scores import Scores
from lbc.scores import ATARI_5, games
from tests.scores.fake_runs import write_run


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["scores", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("read", [_by_argparse, _by_tyro])
@pytest.mark.parametrize(
    ("words", "runs", "json"),
    [
        ([], (), False),
        (["a"], ("a",), False),
        (["a", "b", "--json"], ("a", "b"), True),
        (["--json", "a"], ("a",), True),
    ],
)
def test_any_number_of_directories(read: object, words: list[str], runs: tuple[str, ...], json: bool) -> None:
    command = read({"scores": Scores, "other": Scores}, ["scores", *words])  # type: ignore[operator]
    assert (command.runs, command.json) == (runs, json)


def test_the_tables_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    out = said([], capsys)
    assert "10,077.52 [" in out and "1,665.60 [" in out and "IQM" in out
    assert "One game, Jamesbond, supplies 3,994 of LBC's mean of 10,078." in out
    assert "game by game" not in out and "Errata" not in out


def test_a_terminal_without_unicode_gets_the_tables_all_the_same() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "lbc", "scores"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert b"10,077.52 [" in done.stdout and done.stderr == b""


def test_errata_and_games_are_added(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(["--errata", "--games"], capsys)
    assert "919.76" in out and "884.45" in out and "36,829.4" in out
    assert all(name in out for name in games())


def test_a_run_is_a_further_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "mine", [3.0, 14.6])
    out = said([str(tmp_path / "mine"), "--json"], capsys)
    document = json.loads(out)
    assert document["agents"][-1]["name"] == "mine"
    assert document["agents"][-1]["hns"]["mean"] == {"value": pytest.approx(100.0), "low": None, "high": None}
    assert document["scoring"]["way"] == "final"
    pong = next(game for game in document["games"] if game["game"] == "Pong")
    assert pong["agents"]["mine"]["seeds"] == [14.6]
    words = said([str(tmp_path / "mine")], capsys)
    assert "Atari-5 needs Battle Zone, Double Dunk, Name This Game, Phoenix, Qbert." in words
    assert "the last reported mean of" in words


def test_a_card_that_is_called_like_an_agent_keeps_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "LBC", [14.6])
    names = [agent["name"] for agent in json.loads(said([str(tmp_path / "LBC"), "--json"], capsys))["agents"]]
    assert names[1] == "LBC" and names[-1] == "LBC (yours)"


def test_the_estimate_where_its_games_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ATARI_5:
        write_run(tmp_path / name, [games()[name].human], game=games()[name].ale_id)
    own = json.loads(said([str(tmp_path), "--json"], capsys))["agents"][-1]
    assert own["atari_5"] == pytest.approx(101.0 ** sum(ATARI_5.values()) - 1.0)
    assert own["atari_3_val"] is None


def test_some_of_the_games_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a-ALE-Qbert-v5-s1", [9.0], game="ALE/Qbert-v5")
    assert "a lacks Battle Zone, Double Dunk, Name This Game, Phoenix." in said([str(tmp_path)], capsys)


def test_on_common_games_everybody_is_measured_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "s", [5.0], game="ALE/Surround-v5")
    agents = json.loads(said([str(tmp_path), "--common", "--json"], capsys))["agents"]
    # Surround was reported for neither EfficientZero nor Go-Explore.
    assert [agent["name"] for agent in agents] == ["Agent57", "LBC", "MEME", "MuZero", "GDI-H3", "s"]
    assert {agent["games"] for agent in agents} == {1}


@pytest.mark.parametrize(
    ("ending", "start"),
    [("md", "**Human"), ("tex", r"\begin{table}"), ("json", "{"), ("csv", "agent,frames"), ("txt", "Human")],
)
def test_the_ending_of_the_file_says_the_format(
    tmp_path: Path, ending: str, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / f"scores.{ending}"
    assert said(["--out", str(path)], capsys) == ""
    assert path.read_text().startswith(start)


def test_csv_of_all_games(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(["--format", "csv", "--games"], capsys))))
    assert len(rows) == 57
    assert float(rows[0]["LBC"]) == pytest.approx(4050.37, abs=0.01)
    raw = list(
        csv.DictReader(io.StringIO(said(["--format", "csv", "--games", "--measure", "score"], capsys)))
    )
    assert (raw[0]["record"], raw[0]["LBC"]) == ("251916.0", "279703.5")
    errata = list(csv.DictReader(io.StringIO(said(["--format", "csv", "--errata"], capsys))))
    assert errata[0]["printed"] == "919.76"


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run", [3.0])
    said([str(tmp_path / "run"), "--figures", str(tmp_path / "f"), "--versus", "LBC,run"], capsys)
    names = ["aggregates.png", "curves.png", "records.png", "versus.png"]
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == names


def test_without_matplotlib_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    assert main(["scores", "--figures", str(tmp_path / "f")]) == 2
    out, err = capsys.readouterr()
    assert err == "lbc: figures need matplotlib; install it with: pip install matplotlib\n"
    assert out == ""


def test_without_rich_a_terminal_gets_plain_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with_rich = said([], capsys)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rich" else find(name))
    plain = said([], capsys)
    assert "-------------  ------" in plain
    assert "-------------  ------" not in with_rich and "10,077.52" in with_rich
