"""Whatever directory is given: a table, or one sentence and code 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lbc.cli import main
from tests.scores.fake_runs import write_run


def empty(path: Path) -> None:
    path.mkdir()


def foreign(path: Path) -> None:
    path.mkdir()
    (path / "holiday.jpg").write_bytes(b"\xff\xd8\xff")


def a_file(path: Path) -> None:
    path.write_text("x")


def nothing(path: Path) -> None:
    pass


def without_config(path: Path) -> None:
    write_run(path, [1.0])
    (path / "config.toml").unlink()


def broken_config(path: Path) -> None:
    write_run(path, [1.0])
    (path / "config.toml").write_text("[environment\nid = ")


def binary_config(path: Path) -> None:
    write_run(path, [1.0])
    (path / "config.toml").write_bytes(b"\xff\xfe\x00\x01")


def other_config(path: Path) -> None:
    write_run(path, [1.0])
    (path / "config.toml").write_text("[tool.black]\nline-length = 100\n")


def seed_in_words(path: Path) -> None:
    write_run(path, [1.0])
    text = (path / "config.toml").read_text()
    (path / "config.toml").write_text(text.replace("seed = 1\n", 'seed = "one"\n'))


def without_metrics(path: Path) -> None:
    write_run(path, [1.0])
    (path / "metrics.jsonl").unlink()


def no_report(path: Path) -> None:
    write_run(path, [])


def binary_metrics(path: Path) -> None:
    write_run(path, [1.0])
    (path / "metrics.jsonl").write_bytes(b"\xff\xfe\x00\x01" * 100)


def metrics_of_something_else(path: Path) -> None:
    write_run(path, [1.0])
    (path / "metrics.jsonl").write_text('[1, 2]\n"x"\n17\nnull\n{"loss": 0.5}\n')


def endless_digits(path: Path) -> None:
    write_run(path, [1.0])
    (path / "metrics.jsonl").write_text('{"frames": ' + "9" * 5000 + "}\n")


def endless_brackets(path: Path) -> None:
    write_run(path, [1.0])
    (path / "metrics.jsonl").write_text("[" * 200_000 + "\n")


def no_episode_yet(path: Path) -> None:
    write_run(path, [None, None])


def odd_scores(path: Path) -> None:
    write_run(path, [])
    values = ['"high"', "true", "NaN", "Infinity", "[1]", "9" * 400]
    lines = [f'{{"frames": 1000, "score_mean": {value}}}' for value in values]
    (path / "metrics.jsonl").write_text("\n".join(lines))


def no_frames(path: Path) -> None:
    write_run(path, [])
    (path / "metrics.jsonl").write_text(
        '{"frames": 0, "score_mean": 3.0}\n{"frames": -5, "score_mean": 3.0}\n'
    )


def catch(path: Path) -> None:
    write_run(path, [1.0], game="catch")


def without_reference(path: Path) -> None:
    write_run(path, [1.0], game="ALE/Adventure-v5")


def mixed(path: Path) -> None:
    write_run(path / "a", [1.0])
    write_run(path / "b", [1.0], game="MinAtar/Breakout")


CASES: dict[Callable[[Path], None], str] = {
    empty: "holds no run",
    foreign: "holds no run",
    a_file: "is no directory",
    nothing: "is no directory",
    without_config: "is no run directory: it has no config.toml",
    broken_config: "is not valid TOML",
    binary_config: "is not a text file",
    other_config: "is no configuration of a run: environment.id is missing",
    seed_in_words: "is no configuration of a run: run.seed is missing",
    without_metrics: "has not reported yet",
    no_report: "has not reported yet",
    binary_metrics: "is damaged",
    metrics_of_something_else: "is damaged",
    endless_digits: "is damaged",
    endless_brackets: "is damaged",
    no_episode_yet: "no episode has ended yet",
    odd_scores: "no episode has ended yet",
    no_frames: "no episode has ended yet",
    catch: "played catch, which is not among the 57 Atari games",
    without_reference: "played ALE/Adventure-v5, which is not among the 57 Atari games",
    mixed: "played MinAtar/Breakout, which is not among the 57 Atari games",
}


@pytest.mark.parametrize("spoil", CASES, ids=lambda case: case.__name__)
def test_one_sentence_and_code_2(
    spoil: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(tmp_path / "run")
    assert main(["scores", str(tmp_path / "run"), "--json"]) == 2
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert out == "" and line.startswith("lbc: ") and CASES[spoil] in line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scoring", "best"], "--scoring is 'best', but must be final or max"),
        (["--metric", "loss"], "must be score_mean or eval_score"),
        (["--measure", "iq"], "must be score, hns, hwrns or saber"),
        (["--format", "pdf"], "must be text, markdown, csv, latex or json"),
        (["--json", "--format", "csv"], "contradict each other"),
        (["--common"], "give at least one run directory"),
        (["--games", "--errata", "--format", "csv"], "CSV holds one table"),
        (["--figures", "OUT", "--versus", "MEME"], "must be two names"),
        (["--figures", "OUT", "--versus", "LBC,LBC"], "must be two names"),
        (["--figures", "OUT", "--versus", "MEME,Agent58"], "Did you mean 'Agent57'?"),
        (["--out", "OUT/file/below"], "cannot be used"),
        (["--figures", "OUT/file"], "cannot be used"),
        (["--out", "a\0b"], "is no path"),
        (["a\0b"], "is no path"),
        (["--erata"], "Did you mean '--errata'?"),
    ],
)
def test_options_that_make_no_sense(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["scores", *(word.replace("OUT", str(tmp_path)) for word in arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lbc: ") and sentence in line


def test_absurdly_large_scores_still_give_valid_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a", [1e308])
    write_run(tmp_path / "b", [1e308], seed=2)
    with pytest.warns(RuntimeWarning):
        assert main(["scores", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agents"][-1]["hns"]["mean"]["value"] is None
