import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lbc import __version__
from lbc.cli import main
from lbc.cli.bench import Bench
from lbc.cli.listing import List
from lbc.cli.parsing import _by_argparse, _by_tyro, _repeated_set
from lbc.cli.stopping import ECHO, StopRequest
from lbc.cli.train import Train, parse_frames
from lbc.config import Config
from lbc.errors import TrainingError, UserError
from lbc.interfaces import Reporter
from lbc.reporting import RunDirectory

COMMANDS = {"train": Train, "bench": Bench, "list": List}


def fake_training(monkeypatch: pytest.MonkeyPatch, middle: Callable[[], None]) -> None:
    """Put a training in place that calls ``middle`` once and otherwise keeps to the protocol."""

    def train(
        config: Config,
        reporter: Reporter,
        directory: Path,
        should_stop: Callable[[], bool],
        resume: bool = False,
        on_checkpoint: Callable[[Path], object] | None = None,
    ) -> dict[str, Any]:
        reporter.start({"category": "LBC"})
        middle()
        reporter.report({"frames": 1, "score_mean": 1.0, "behavior_entropy": 1.0})
        summary = {"frames": 1, "stopped": should_stop(), "seed": config.run.seed}
        reporter.finish(summary)
        return summary

    monkeypatch.setattr("lbc.runtime.loop.train", train)


def summary_of(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "summary.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "minatr"], "Did you mean 'minatar'?"),
        (["train", "catch", "--set", "learner.learning_rte=1"], "Did you mean 'learning_rate'?"),
        (["train", "catch", "--set", "buffer.replay=0"], "buffer.replay is 0, but must be at least 1"),
        (["train", "catch", "--set", "buffer.replay=often"], "must be a whole number"),
        (["train", "catch", "--frames", "9", "--minutes", "1"], "contradict"),
        (["train", "catch", "--frames", "many"], "--frames is 'many'"),
        (["train", "catch", "--seed", "x"], "invalid int value: 'x'"),
        (["train", "catch", "--sed", "1"], "Did you mean '--seed'?"),
        (["train", "catch", "--env", "ketch"], "Did you mean 'catch'?"),
        (["train"], "required: preset"),
        (["trian", "catch"], "invalid choice: 'trian'"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(
    arguments: list[str], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--out", str(tmp_path / "run")] if "catch" in arguments[1:] else []
    assert main([*arguments, *where]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("lbc: ")
    assert sentence in line
    assert not (tmp_path / "run").exists()


def test_bad_input_through_the_shell(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("")
    command = [sys.executable, "-m", "lbc", "train", "catch", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"lbc: '{tmp_path}' already holds a run; choose another directory with --out.\n"
    assert done.stdout == ""


def test_a_run_that_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_training(monkeypatch, lambda: None)
    monkeypatch.chdir(tmp_path)
    assert main(["train", "catch+no-ucb", "--env", "MinAtar/Asterix", "--seed", "5"]) == 0
    (directory,) = Path("runs").iterdir()
    assert directory.name.startswith("catch-no-ucb-MinAtar-Asterix-s5-")
    assert summary_of(directory) == {"frames": 1, "stopped": False, "seed": 5}
    again = tmp_path / "again"
    assert main(["train", str(directory / "config.toml"), "--out", str(again)]) == 0
    assert (again / "config.toml").read_text() == (directory / "config.toml").read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_training_to_end(
    number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = signal.getsignal(number)
    fake_training(monkeypatch, lambda: os.kill(os.getpid(), number))
    assert main(["train", "catch", "--out", str(tmp_path)]) == code
    assert summary_of(tmp_path)["stopped"] is True
    assert (tmp_path / "learning_curve.png").exists()
    assert signal.getsignal(number) is handler


def test_the_second_signal_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ECHO + 0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    fake_training(monkeypatch, twice)
    assert main(["train", "catch", "--out", str(tmp_path)]) == 143
    assert (tmp_path / "config.toml").exists()
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wish_that_comes_twice_is_one_wish(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `timeout` sends it; a clock of our own, so that a busy machine changes nothing."""
    clock = 100.0
    monkeypatch.setattr("lbc.cli.stopping.time.monotonic", lambda: clock)
    with StopRequest(command=False) as stop:
        signal.raise_signal(number)
        clock += 0.9 * ECHO
        signal.raise_signal(number)
        assert stop.requested() and stop.exit_code == 128 + number
        clock += 0.2 * ECHO
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_failed_training_is_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise TrainingError("The loss is not finite.")

    fake_training(monkeypatch, fail)
    assert main(["train", "catch", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "lbc: The loss is not finite.\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lbc {__version__}\n"


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "`lbc play` and `lbc eval`\n  pong\n" in out
    for name in ("atari-laptop", "random-selection", "MinAtar/Breakout", "CartPole-v1", "deepsea"):
        assert name in out


@pytest.mark.parametrize("command", [[], ["train"], ["list"]])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command, "--help"])
    assert not end.value.code
    assert "usage: lbc" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["train", "catch"],
        ["train", "catch", "--seed", "3", "--minutes", "0.5", "--out", "x", "--env", "y"],
        ["train", "--frames", "20M", "catch", "--set", "a.b=1", "--set", "c.d=[1, 2]"],
        ["train", "--set", "a.b=1", "c.d=2", "catch"],
        ["bench", "--env", "ALE/Pong-v5", "ALE/Boxing-v5", "--json"],
    ],
)
def test_both_parsers_read_the_same(arguments: list[str]) -> None:
    pytest.importorskip("tyro")
    arguments = _repeated_set(arguments, COMMANDS)
    assert _by_argparse(COMMANDS, arguments) == _by_tyro(COMMANDS, arguments)


def test_set_may_be_repeated_or_listed() -> None:
    for arguments in (["--set", "a.b=1", "--set", "c.d=2"], ["--set", "a.b=1", "c.d=2"]):
        command = _by_argparse(COMMANDS, _repeated_set(["train", "catch", *arguments], COMMANDS))
        assert command == Train("catch", set=("a.b=1", "c.d=2"))
    command = _by_argparse(COMMANDS, _repeated_set(["bench", "--env", "x", "y", "--minutes", "2"], COMMANDS))
    assert command == Bench(env=("x", "y"), minutes=2.0)


@pytest.mark.parametrize(
    ("text", "frames"),
    [("20_000_000", 20_000_000), ("20M", 20_000_000), ("1e6", 1_000_000), ("1.5k", 1500), ("2b", 2 * 10**9)],
)
def test_frames_can_be_written_short(text: str, frames: int) -> None:
    assert parse_frames(text) == frames


@pytest.mark.parametrize("text", ["", "M", "1.5", "ten", "inf", "nan", "5X"])
def test_frames_must_be_a_whole_number(text: str) -> None:
    with pytest.raises(UserError, match="--frames is"):
        parse_frames(text)


def test_a_run_that_was_interrupted_goes_on(tmp_path):
    """By --resume, and by asking for the same run again; reports are neither lost nor doubled."""
    out = tmp_path / "run"
    wishes = ["--frames", "1500", "--set", "run.threads=1", "run.report_seconds=1e9", "buffer.batch_size=4"]
    command = ["train", "catch", *wishes, "--out", str(out)]
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED.format(command=command)], capture_output=True, text=True
    )
    assert stopped.returncode == 130, stopped.stderr
    assert summary_of(out)["outcome"] == "interrupted" and summary_of(out)["frames"] < 1500
    assert main(["train", "--resume", str(out)]) == 0
    assert summary_of(out)["outcome"] == "finished"
    frames = [json.loads(line)["frames"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert frames == sorted(frames) and len(set(frames)) >= len(frames) - 1, (
        "the last one is said at the end, too"
    )
    assert frames[-1] >= 1500
    assert main(["train", "--resume", str(out)]) == 2, "it has ended"
    assert main(command) == 2, "and keeps its directory"
    earlier = json.loads((out / "machine.json").read_text())["earlier"]
    assert len(earlier) == 1 and "command" in earlier[0] and "commit" in earlier[0]


def reports_of(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_a_run_goes_on_for_longer(tmp_path, capsys):
    """With a larger budget: nothing is lost, reports go on, and nothing else depends on the budget."""
    out = tmp_path / "run"
    wishes = ["--set", "run.threads=1", "run.report_seconds=1e9", "run.reports=5", "buffer.batch_size=4"]
    assert main(["train", "catch", "--frames", "600", *wishes, "--out", str(out)]) == 0
    before = reports_of(out)
    assert main(["train", "--resume", str(out)]) == 2
    assert "larger --frames or --minutes" in capsys.readouterr().err
    (out / "summary.json").unlink()  # as a run that was killed leaves it: its reports know how far it came
    assert main(["train", "--resume", str(out), "--frames", "500"]) == 2
    assert "--frames must be more" in capsys.readouterr().err
    assert main(["train", "--resume", str(out), "--frames", "1200", "--seed", "2"]) == 2
    assert "frames = 600" in (out / "config.toml").read_text(), "a refused wish changes nothing"
    assert main(["train", "--resume", str(out), "--frames", "1200"]) == 0
    after = reports_of(out)
    assert summary_of(out)["outcome"] == "finished" and summary_of(out)["frames"] >= 1200
    assert after[: len(before) - 1] == before[:-1], "the last one was said at the old end"
    assert len(after) >= len(before) + 2, "the second half is reported, too"
    updates = [report["updates"] for report in after]
    assert updates == sorted(updates) and updates[-1] > before[-1]["updates"]
    config = (out / "config.toml").read_text()
    assert "frames = 1200" in config and 'scope = "shared"' in config, "what the budget decided stays"
    assert main(["train", "--resume", str(out), "--minutes", "0.0001"]) == 2
    assert "--minutes must be more" in capsys.readouterr().err


STOPPED = """
import os, signal, sys
from lbc.runtime.run import SerialRun
step, taken = SerialRun.step, [0]
def counted(self):
    taken[0] += 1
    if taken[0] == 12:
        os.kill(os.getpid(), signal.SIGINT)
    step(self)
SerialRun.step = counted
from lbc.cli import main
sys.exit(main({command}))
"""


def test_resume_takes_no_other_wish(tmp_path, capsys):
    assert main(["train", "--resume", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert main(["train", "catch", "--resume", str(tmp_path)]) == 2
    assert "no preset" in capsys.readouterr().err
    assert main(["train", "--resume", str(tmp_path), "--seed", "3"]) == 2
    assert "no other option" in capsys.readouterr().err


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(tmp_path):
    command = ["train", "catch", "--frames", "600", "--set", "buffer.batch_size=4", "--out", str(tmp_path)]
    for again in (command, ["train", "--resume", str(tmp_path)]):
        killed = subprocess.run([sys.executable, "-c", KILLED.format(command=command)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert (tmp_path / "metrics.jsonl").exists() and not (tmp_path / "summary.json").exists()
        assert main(again) == 0
        reports = (tmp_path / "metrics.jsonl").read_text().splitlines()
        assert json.loads(reports[0])["frames"] < 100 and summary_of(tmp_path)["outcome"] == "finished"
        shutil.rmtree(tmp_path)


KILLED = STOPPED.replace("signal.SIGINT", "signal.SIGKILL")


def test_two_processes_do_not_share_a_run(tmp_path, capsys):
    first = RunDirectory(tmp_path)
    first.create("")
    with pytest.raises(UserError, match="another process is at work"):
        RunDirectory(tmp_path).lock()
    (tmp_path / "config.toml").write_text("")
    assert main(["train", "--resume", str(tmp_path)]) == 2
    assert "another process is at work" in capsys.readouterr().err
    first.unlock()
    RunDirectory(tmp_path).lock()
