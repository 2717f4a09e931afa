from __future__ import annotations

import os
from pathlib import Path

import pytest

from lbc.errors import UserError
from lbc.scores import columns, read_runs, summarise
from lbc.scores.runs import by_card
from tests.scores.fake_runs import write_run


def test_seeds_of_one_card_and_game_are_one_entry(tmp_path: Path) -> None:
    for seed, score in ((1, -10.0), (2, 0.0), (3, 13.0)):
        write_run(tmp_path / f"p{seed}", [-20.0, score], seed=seed)
    boxing = write_run(tmp_path / "b", [50.0], game="ALE/Boxing-v5")
    (column,) = columns(read_runs([*(tmp_path / f"p{seed}" for seed in (3, 1, 2)), boxing]))
    assert {game: seeds.tolist() for game, seeds in column.scores.items()} == {
        "Boxing": [50.0],
        "Pong": [-10.0, 0.0, 13.0],
    }
    assert column.frames == 2000.0
    summary = summarise(column)
    assert summary.hns.resampled == "seeds"
    pong = 100 * (1.0 + 20.7) / (14.6 + 20.7)  # the seeds' mean is 1
    boxing_hns = 100 * (50.0 - 0.1) / 12.0
    assert summary.hns.mean.value == pytest.approx((pong + boxing_hns) / 2)


def test_the_last_score_or_the_highest(tmp_path: Path) -> None:
    runs = read_runs([write_run(tmp_path / "a", [None, -20.0, 18.0, 7.0])])
    assert columns(runs, "final")[0].score("Pong") == 7.0
    assert columns(runs, "max")[0].score("Pong") == 18.0


def test_evaluation_instead_of_training(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [1.0, 5.0], key="eval_score")
    assert columns(read_runs([run], "eval_score"))[0].score("Pong") == 5.0
    with pytest.raises(UserError, match="no episode has ended"):
        read_runs([run])
    other = write_run(tmp_path / "b", [1.0])
    with pytest.raises(UserError, match="has no evaluation; leave --metric eval_score out"):
        read_runs([other], "eval_score")


def test_two_cards_are_two_columns(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [1.0])
    second = write_run(tmp_path / "b", [2.0], settings=["learner.learning_rate=1e-5"])
    assert [column.name for column in columns(read_runs([first, second]))] == ["a", "b"]


def test_machine_and_report_settings_make_no_other_card(tmp_path: Path) -> None:
    machine = ["run.device=cpu", "run.threads=1", "run.report_seconds=5.0", "actor.workers=3"]
    first = write_run(tmp_path / "a", [1.0])
    second = write_run(tmp_path / "b", [2.0], seed=2, settings=machine)
    (column,) = columns(read_runs([first, second]))
    assert column.scores["Pong"].tolist() == [1.0, 2.0]


def test_equal_labels_of_different_cards_are_told_apart(tmp_path: Path) -> None:
    first = write_run(tmp_path / "x" / "main" / "seed1", [1.0])
    second = write_run(tmp_path / "y" / "main" / "seed1", [2.0], settings=["buffer.replay=1"])
    assert list(by_card(read_runs([first, second]))) == ["main", "main (2)"]


@pytest.mark.parametrize(
    ("place", "label"),
    [
        ("atari-fast-ALE-Pong-v5-s3", "atari-fast"),
        ("atari-fast-ALE-Pong-v5-s3-20260101-120000", "atari-fast"),
        ("mine", "mine"),
        ("main/seed4", "main"),
        ("main/Pong/seed4", "main"),
        ("main/ms_pacman/seed4", "main"),
    ],
)
def test_the_label_is_the_card_as_far_as_the_path_tells(tmp_path: Path, place: str, label: str) -> None:
    (run,) = read_runs([write_run(tmp_path / place, [1.0])])
    assert run.label == label


def test_a_label_in_words(tmp_path: Path) -> None:
    run = write_run(tmp_path / "lbc-bm" / "seed1", [1.0])
    (run.parent / "label.txt").write_text("LBC-BM, full size\n")
    assert read_runs([run])[0].label == "LBC-BM, full size"


@pytest.mark.parametrize("name", ["red \x1b[31m", "two\nlines", os.fsdecode(b"latin \xe9")])
def test_names_that_a_terminal_would_obey_are_made_harmless(tmp_path: Path, name: str) -> None:
    (run,) = read_runs([write_run(tmp_path / name, [1.0])])
    assert "?" in run.label and run.label.isprintable()
    run.label.encode("utf-8")


def test_a_folder_of_runs_is_taken_apart_and_nothing_counts_twice(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_run(tmp_path / "main" / f"seed{seed}", [float(seed)], seed=seed)
    assert len(read_runs([tmp_path])) == 2
    assert len(read_runs([tmp_path / "main", tmp_path / "main" / "seed1", tmp_path])) == 2


def test_a_seed_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    first, second = write_run(tmp_path / "a", [1.0]), write_run(tmp_path / "b", [2.0])
    with pytest.raises(UserError, match="same card, game and seed; give one of them"):
        read_runs([first, second])


def test_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [1.0, 2.0])
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"frames": 3000, "score_me')
    assert read_runs([run])[0].score("final") == 2.0
