from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbc.scores import Column, published_columns, read_runs, summarise
from lbc.scores import figures as drawn
from tests.scores.fake_runs import write_run

COLUMNS = {column.name: column for column in published_columns()}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures instead of files: what they show can be asked."""
    figures: list[Any] = []
    monkeypatch.setattr(drawn, "save", lambda figure, png: figures.append(figure))
    return figures


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_bars_stand_in_the_order_of_frames(kept: list[Any]) -> None:
    drawn.aggregates([summarise(COLUMNS[name]) for name in ("Agent57", "LBC", "EfficientZero")], Path("x"))
    frames, mean, *_ = kept[0].axes
    assert [label.get_text() for label in frames.get_yticklabels()] == [
        "Agent57",
        "LBC",
        "EfficientZero (26 games)",
    ]
    assert [bar.get_width() for bar in frames.patches] == [1e11, 1e9, 4e5]
    assert texts(mean) == ["4,762", "10,078", "193"]


def test_a_square_for_every_record(kept: list[Any]) -> None:
    drawn.world_records(list(COLUMNS.values()), Path("x"))
    (axes,) = kept[0].axes
    assert sorted(texts(axes)) == sorted(
        ["18 of 57", "24 of 57", "16 of 57", "19 of 57", "0 of 26", "15 of 55", "22 of 57"]
    )
    squares = [len(marks.get_offsets()) for marks in axes.collections[::2]]
    assert sorted(squares) == [0, 15, 16, 18, 19, 22, 24]


def test_nobody_reaches_anything(kept: list[Any]) -> None:
    drawn.world_records([Column("me", 1e6, {"Pong": np.array([-21.0])})], Path("x"))
    assert texts(kept[0].axes[0]) == ["0 of 1"]


def test_two_agents_on_the_games_that_both_have(kept: list[Any]) -> None:
    drawn.versus(COLUMNS["MuZero"], COLUMNS["EfficientZero"], Path("x"))
    (axes,) = kept[0].axes
    assert axes.get_xscale() == "log"
    assert len(axes.get_yticklabels()) == 26
    assert kept[0].legends[0].get_title().get_text() == "EfficientZero ahead in 0 of 26 games, MuZero in 26"


def test_below_chance_is_drawn_at_the_edge_of_the_log_scale(kept: list[Any]) -> None:
    drawn.versus(COLUMNS["MuZero"], COLUMNS["LBC"], Path("x"))  # MuZero's Skiing is -101%
    (axes,) = kept[0].axes
    lowest = min(marks.get_offsets()[:, 0].min() for marks in axes.collections)
    assert lowest == drawn.LOWEST
    assert "below 1%" in kept[0].get_supxlabel()


def test_one_panel_per_game_with_a_band_over_seeds(tmp_path: Path, kept: list[Any]) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path / f"p{seed}", [-20.0, 0.0, 3.0 * seed], seed=seed)
    write_run(tmp_path / "b", [1.0], game="ALE/Boxing-v5")
    drawn.learning_curves(read_runs([tmp_path]), Path("x"))
    boxing, pong = kept[0].axes
    assert (boxing.get_title(loc="left"), pong.get_title(loc="left")) == ("Boxing", "Pong")
    assert pong.collections and not boxing.collections  # one seed has no band
    assert "1 to 3 seeds" in kept[0].get_supxlabel() and "lowest to highest" in kept[0].get_supxlabel()


def test_smoothing_is_over_five_reports(tmp_path: Path, kept: list[Any]) -> None:
    scores = [0.0] * 10 + [10.0] + [0.0] * 10
    drawn.learning_curves(read_runs([write_run(tmp_path / "a", scores)]), Path("x"))
    line = kept[0].axes[0].lines[0]
    assert max(line.get_ydata()) == pytest.approx(2.0)


def test_files_are_pictures(tmp_path: Path) -> None:
    png = tmp_path / "new" / "versus.png"
    drawn.versus(COLUMNS["MEME"], COLUMNS["LBC"], png)
    assert png.read_bytes().startswith(b"\x89PNG")
