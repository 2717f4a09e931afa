"""`lbc suite`: words and plans as they are; queues with real runs, interrupted, killed and gone on with."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lbc.cli import main
from lbc.cli.parsing import _by_argparse, _by_tyro, _repeated_set
from lbc.cli.scores import Scores
from lbc.cli.suite import Suite as Command
from lbc.cli.suite import parse_seeds
from lbc.environments import atari
from lbc.errors import UserError
from lbc.parameters import newest
from lbc.scores import games
from lbc.studies import suite as suites
from lbc.studies.display import LiveDisplay, PlainDisplay, rows_of
from lbc.studies.games import find_games, folder_of
from lbc.studies.plan import missing
from lbc.studies.state import State, seconds_left
from lbc.studies.suite import Suite, label_of
from tests.runtime.test_processes import wait_until

SMALL = ("actor.num_envs=8", "run.reports=40", "run.report_seconds=0.5")
OURS = ("ALE/Pong-v5", "ALE/Boxing-v5")


def queue(*words: str, out: Path, seeds: tuple[int, ...] = (1,), frames: int = 1000) -> list[suites.Run]:
    return Suite(words, ("catch",), seeds, frames=frames).plan(out)


def table(out: Path) -> list[dict[str, str]]:
    with (out / "suite.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# Words


def test_words_for_sets_of_games() -> None:
    everything = find_games(["atari57"])
    assert len(everything) == 57 and set(everything) == {game.ale_id for game in games().values()}
    assert set(everything) <= set(atari.ids())
    assert find_games(["atari3val"]) == ["ALE/Assault-v5", "ALE/MsPacman-v5", "ALE/YarsRevenge-v5"]
    assert len(find_games(["Atari-5"])) == 5 and len(find_games(["minatar"])) == 5
    assert set(find_games(["atari5"])) < set(find_games(["atari10"])) < set(everything)


def test_games_in_any_spelling_each_once_and_in_order() -> None:
    words = ["MinAtar/Breakout", "pong", "ms_pacman", "ALE/Pong-v5", "MsPacman", "minatar-breakout", "catch"]
    assert find_games(words) == ["MinAtar/Breakout", "ALE/Pong-v5", "ALE/MsPacman-v5", "catch"]
    assert find_games(["CartPole-v1", "my_games:maze"]) == ["CartPole-v1", "my_games:maze"]
    assert [folder_of(game) for game in find_games(words)] == [
        "minatar-breakout",
        "pong",
        "ms_pacman",
        "catch",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--games", "pomg", "--cards", "catch"],
            "'pomg' is no game and no set of games. Did you mean 'pong'?",
        ),
        (["--games", "atari75", "--cards", "catch"], "Did you mean 'atari5'? The sets are atari57,"),
        (["--games", "ALE/Pong-v4", "--cards", "catch"], "Did you mean 'ALE/Pong-v5'?"),
        (["--games", "catch", "--cards", "cach"], "Did you mean 'catch'?"),
        (["--games", "catch"], "say which games and cards"),
        ([], "holds no suite yet"),
        (["--games", "catch", "--cards", "catch", "--seeds", "2-1"], "--seeds has '2-1'"),
        (["--games", "catch", "--cards", "catch", "--frames", "1", "--minutes", "1"], "contradict"),
        (["--games", "catch", "--cards", "catch", "--set", "run.seed=3"], "--seed and --set run.seed"),
        (["--games", "catch", "--cards", "catch", "--set", "environment.id=x"], "--env and --set"),
        (["--games", "catch", "--cards", "catch", "--budget", "0"], "--budget is 0, but must be positive"),
        (["--games", "catch", "--cards", "catch", "--jobs", "0"], "--jobs is 0"),
        (["--games", "catch", "--cards", "catch", "--cores", "none"], "--cores is 'none'"),
        (["--games", "catch", "--cards", "catch", "--ways", "training"], "must name 'favourite'"),
        (["--games", "catch", "--cards", "catch", "--runtime", "cloud"], "run.runtime is 'cloud'"),
        (["--games", "catch", "--cards", "catch", "--stale", "maybe"], "--stale is 'maybe'"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suite", *words, "--out", str(tmp_path / "suite")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
    assert not (tmp_path / "suite").exists()


@pytest.mark.parametrize("read", [_by_argparse, _by_tyro])
def test_several_words_may_follow_an_option(read: object) -> None:
    commands = {"suite": Command, "scores": Scores}
    words = ["suite", "--games", "atari5", "pong", "--cards", "catch", "minatar", "--seeds", "1", "3-5"]
    words += ["--set", "a.b=1", "c.d=2", "--dry-run"]
    found = read(commands, _repeated_set(words, commands))  # type: ignore[operator]
    assert (found.games, found.cards, found.dry_run) == (("atari5", "pong"), ("catch", "minatar"), True)
    assert parse_seeds(found.seeds) == (1, 3, 4, 5) and found.set == ("a.b=1", "c.d=2")
    words = ["scores", "--games", "one", "two"]  # there it is a switch
    assert read(commands, _repeated_set(words, commands)).runs == ("one", "two")  # type: ignore[operator]


# Plans


def test_the_order_is_balanced_and_every_run_has_its_folder(tmp_path: Path) -> None:
    asked = Suite(
        ("pong", "catch"), ("catch", "catch+no-ucb"), (1, 2), ("run.reports=5",), 500, runtime="serial"
    )
    runs = asked.plan(tmp_path)
    assert [str(run.path.relative_to(tmp_path)) for run in runs[:5]] == [
        "catch/pong/seed1",
        "catch-no-ucb/pong/seed1",
        "catch/catch/seed1",
        "catch-no-ucb/catch/seed1",
        "catch/pong/seed2",
    ]
    config = runs[1].config()
    assert (config.environment.id, config.run.frames, config.run.seed) == ("ALE/Pong-v5", 500, 1)
    assert config.run.runtime == "serial" and config.run.reports == 5 and config.controller.ucb_c_high == 0.0
    assert runs[0].config().run.threads == 1 and runs[0].variant.sets[0] == "environment.id=ALE/Pong-v5"
    timed = replace(asked, frames=0, minutes=2.0).plan(tmp_path)[0]
    assert timed.config().run.minutes == 2.0


def test_cards_that_are_files(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "small"\n[environment]\nid = "catch"\n')
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.toml").write_text('base = "small"\n')
    mine, twin = (str(tmp_path / name) for name in ("mine.toml", "other/mine.toml"))
    (run,) = Suite(("catch",), (f"{mine}+no-ucb",)).plan(tmp_path / "out")
    assert run.path == tmp_path / "out" / "mine-no-ucb" / "catch" / "seed1"
    assert label_of("runs/best/config.toml") == "best"
    with pytest.raises(UserError, match="share a folder"):
        Suite(("catch",), (mine, twin)).plan(tmp_path / "out")


def test_what_was_asked_is_read_back_and_what_is_said_later_replaces_it(tmp_path: Path) -> None:
    asked = Suite(("atari5",), ("catch",), (1, 2), ('run.device="cpu"',), 1000, 0.0, "serial", 4)
    asked.write(tmp_path, asked.plan(tmp_path))
    assert suites.read(tmp_path) == asked
    assert (tmp_path / "catch" / "qbert" / "label.txt").read_text() == "catch\n"
    assert Suite().over(asked) == asked
    assert Suite(seeds=(1, 2, 3)).over(asked) == replace(asked, seeds=(1, 2, 3))
    assert Suite(minutes=5.0).over(asked) == replace(asked, frames=0, minutes=5.0)
    for text, sentence in (
        ("game = []", "Did you mean 'games'"),
        ('seeds = ["1"]', "no list of whole numbers"),
        ("frames = 1.5", "no whole number"),
        ("games = [", "not valid TOML"),
    ):
        (tmp_path / "suite.toml").write_text(text)
        with pytest.raises(UserError, match=sentence):
            suites.read(tmp_path)


def test_an_unfinished_run_of_another_budget_is_not_removed(tmp_path: Path) -> None:
    (run,) = queue("catch", out=tmp_path)
    assert main(run.command()[3:]) == 0
    (run.path / "summary.json").write_text('{"outcome": "interrupted"}')
    (longer,) = queue("catch", out=tmp_path, frames=2000)
    with pytest.raises(UserError, match=r"has begun, but run\.frames was 1000, and is 2000 today"):
        missing([longer])
    assert missing([longer], "keep") == [] and missing([longer], "rerun") == [longer]
    assert missing([run]) == [run] and run.resumable()
    run.failure.write_text("it broke\n")
    fresh = replace(run, seed=2, path=run.path.with_name("seed2"))
    assert missing([run, fresh]) == [fresh, run]  # what failed is tried last


# What is shown


def test_the_time_left_follows_each_runs_own_speed(tmp_path: Path) -> None:
    first, second = queue("pong", "catch", out=tmp_path)
    assert seconds_left([State(first), State(second)]) is None
    done = State(first, "done", 1000, 10.0)
    assert seconds_left([done, State(second)]) == 10.0
    running = State(second, "running", 500, 50.0)  # ten frames a second
    third = replace(second, seed=2)
    assert seconds_left([done, running]) == 50.0
    assert seconds_left([done, running, State(third)], jobs=2) == pytest.approx(50.0)  # the longer one
    assert seconds_left([State(replace(first, minutes=2.0), "stopped", 9, 60.0)]) == 60.0


def test_many_runs_are_shown_by_game_and_what_runs_is_never_hidden(tmp_path: Path) -> None:
    runs = queue(*OURS, "catch", "deepsea", out=tmp_path, seeds=(1, 2))
    states = [State(run) for run in runs]
    assert len(rows_of(states, 8)[0]) == 8 and rows_of(states, 8)[1] == []
    states[3] = State(runs[3], "running", 500, 5.0, -0.5, 0.25, 100.0)
    states[-1] = State(runs[-1], "done", 1000, 5.0, -0.5, 0.25, 100.0)
    rows, hidden = rows_of(states, 2)
    assert [(row.cells()["game"], row.cells()["state"]) for row in rows] == [
        ("pong", "waiting"),
        ("deepsea", "running, 1/2 done"),
    ]
    assert [state.run.variant.task for state in hidden] == ["boxing", "boxing", "catch", "catch"]
    said = io.StringIO()
    PlainDisplay(said).update(states)
    assert " 19%  8 runs: 1 running, 1 done, 6 waiting  100 frames/s  0:45 left\n" in said.getvalue()
    assert "deepsea-catch seed 1 running: 50%, score -0.50, 100 frames/s, 0:05 left" in said.getvalue()


def test_the_live_table_has_scores_beside_humans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "30")
    pong, catch = queue("pong", "catch", out=tmp_path)
    said = io.StringIO()
    display = LiveDisplay(said)
    display.update([State(pong, "done", 1000, 10.0, 14.6, 15.0, 100.0), State(catch)], last=True)
    display.say("a line [above] it")
    display.stop()
    text = said.getvalue()
    assert "HNS %" in text and "100.00" in text and "waiting" in text and "2 runs: 1 done, 1 waiting" in text
    assert "a line [above] it" in text


def test_a_dry_run_shows_the_plan_and_the_time_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "suite"
    words = ["suite", "--games", "catch", "pong", "--cards", "catch", "--frames", "1000", "--out", str(out)]
    assert main([*words, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "2 runs: 2 waiting" in said and "2K of 2K frames" in said and "is known when" in said
    assert not out.exists()
    first = queue("catch", out=out)[0]
    first.path.mkdir(parents=True)
    (first.path / "summary.json").write_text('{"outcome": "finished"}')
    (first.path / "metrics.jsonl").write_text('{"frames": 1000, "seconds": 50, "score_mean": 1}\n')
    assert main([*words, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "1 done, 1 waiting  0:50 left" in said and "1K of 2K frames" in said


# Real runs


def begun(out: Path) -> list[str]:
    """Whole lines of reports of the only run."""
    return [line for path in out.glob("*/*/seed1/metrics.jsonl") for line in path.read_text().splitlines()]


def test_killed_and_gone_on_with(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`kill -9` of the queue: its run ends with a checkpoint, and the next call goes on from there."""
    if sys.platform != "linux":
        pytest.skip("elsewhere a run survives its queue")
    words = ["--games", "catch", "--cards", "catch", "--frames", "2500", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "lbc", "suite", *words, *(x for s in SMALL for x in ("--set", s))]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    path = tmp_path / "catch" / "catch" / "seed1"
    try:
        assert wait_until(lambda: len(begun(tmp_path)) >= 3, 120), "it trains"
    finally:
        killed.kill()
        killed.wait()
    assert wait_until((path / "summary.json").exists, 60), "the run has ended by itself"
    summary = json.loads((path / "summary.json").read_text())
    assert summary["outcome"] == "interrupted" and 0 < summary["frames"] < 2500
    before = [json.loads(line)["frames"] for line in begun(tmp_path)]
    ways = ["--ways", "favourite", "component_2"]
    assert main(["suite", "--out", str(tmp_path), "--evaluate", "2", *ways]) == 0
    after = [json.loads(line)["frames"] for line in begun(tmp_path)]
    assert after[: len(before) - 1] == before[:-1] and after == sorted(after) and after[-1] >= 2500
    (row,) = table(tmp_path)
    assert (
        row["state"] == "done"
        and float(row["evaluated"])
        == json.loads((path / "eval.json").read_text())["ways"]["favourite"]["mean"]
    )
    evaluated = json.loads((path / "eval.json").read_text())
    assert list(evaluated["ways"]) == ["favourite", "component_2"]
    said = capfd.readouterr().out
    assert "Scores, game by game" in said and f"wrote {tmp_path / 'suite.md'}" in said
    (path / "eval.json").write_text(json.dumps(evaluated | {"frames": summary["frames"]}))
    assert main(["suite", "--out", str(tmp_path), "--evaluate", "2", *ways]) == 0
    assert json.loads((path / "eval.json").read_text())["frames"] == after[-1], (
        "an earlier agent's is no evaluation"
    )
    assert main(["suite", "--out", str(tmp_path)]) == 0
    assert "1 run, 1 done already" in capfd.readouterr().out


def test_a_budget_and_ctrl_c_stop_it_with_a_checkpoint(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--games", "catch", "--cards", "catch", "--frames", "100M", "--set", *SMALL]
    assert main(["suite", *words, "--out", str(tmp_path), "--budget", "0.2"]) == 0
    said = capfd.readouterr().out
    assert f"the budget is used: 1 of 1 run is left; `lbc suite --out {tmp_path}` goes on." in said
    played = len(begun(tmp_path))

    def press() -> None:
        wait_until(lambda: len(begun(tmp_path)) > played + 2, 120)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    assert main(["suite", "--out", str(tmp_path)]) == 130
    assert "stopped: 1 of 1 run is left" in capfd.readouterr().out
    (row,) = table(tmp_path)
    found, complaints = newest(Path(row["directory"]) / "checkpoints")
    assert row["state"] == "stopped" and found is not None and not complaints
    assert found.frames == int(row["frames"]) == json.loads(begun(tmp_path)[-1])["frames"]


def test_a_failing_run_is_noted_and_the_queue_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two at a time, one of them cannot be; Pong for a moment, so that a table has references."""
    sets = ["actor.num_envs=4", "environment.max_episode_frames=200", "run.reports=2"]
    words = [
        "--games",
        "nowhere:game",
        "pong",
        "--cards",
        "short-pong",
        "--frames",
        "2000",
        "--runtime",
        "serial",
    ]
    arguments = ["suite", *words, "--set", *sets, "--out", str(tmp_path)]
    assert main([*arguments, "--jobs", "2"]) == 1
    out, err = capfd.readouterr()
    assert "nowhere-game-short-pong seed 1 failed with exit code 2: lbc: " in err and "nowhere" in err
    failed, pong = table(tmp_path)
    assert (failed["state"], pong["state"]) == ("failed", "done") and "exit code 2" in failed["failure"]
    assert float(pong["human_normalised"]) == pytest.approx((float(pong["score"]) + 20.7) / 35.3 * 100)
    assert "Human-normalised scores" in out and "1 of 2 runs is left" in out
    stamp = (Path(pong["directory"]) / "summary.json").stat().st_mtime_ns
    assert main(["suite", "--out", str(tmp_path)]) == 1  # tried again, and Pong is not
    assert (Path(pong["directory"]) / "summary.json").stat().st_mtime_ns == stamp
    shutil.rmtree(failed["directory"])
    capfd.readouterr()
    assert main(["scores", str(tmp_path), "--common"]) == 0  # the same numbers, and the card's own name
    line = next(line for line in capfd.readouterr().out.splitlines() if line.startswith("short-pong "))
    assert f"{float(pong['human_normalised']):,.2f}" in line


def test_one_queue_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fcntl")
    from lbc.studies.runner import alone_in

    words = ["suite", "--games", "catch", "--cards", "catch", "--out", str(tmp_path)]
    with alone_in(tmp_path):
        assert main(words) == 2
    assert "another process is at work on the runs in" in capsys.readouterr().err
