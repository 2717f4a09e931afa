import json
from pathlib import Path

import numpy as np
import pytest

from lbc.reporting.curves import Curve, band, interval, smoothed
from lbc.studies import compare, compare_panels, table
from lbc.studies.figures import spread


def write_run(path: Path, scores: list[float | None], step: int = 100) -> Path:
    path.mkdir(parents=True)
    reports = [
        {"frames": step * (i + 1), "seconds": i + 1.0, "score_mean": score} for i, score in enumerate(scores)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports))
    return path


def test_the_figure_is_written(tmp_path: Path) -> None:
    main = [write_run(tmp_path / f"a{s}", [None, s, 2.0 * s]) for s in range(3)]
    other = [write_run(tmp_path / "b", [1.0])]
    png = tmp_path / "new" / "x.png"
    assert compare(
        {"main": main, "other": other, "absent": [tmp_path / "c"]}, png, "t", references={"best": 4.0}
    )
    assert png.read_bytes().startswith(b"\x89PNG")
    assert compare_panels({"A": {"main": main}, "B": {"other": other}}, tmp_path / "y.png")


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    assert not compare({"absent": [tmp_path / "c"]}, tmp_path / "x.png", "t")
    assert not (tmp_path / "x.png").exists()


def test_the_numbers_in_the_table(tmp_path: Path) -> None:
    # 20 reports: the last tenth of the frames are the reports at 1800, 1900 and 2000.
    first = write_run(tmp_path / "a", [0.0] * 17 + [3.0, 4.0, 5.0])
    second = write_run(tmp_path / "b", [2.0] * 20)
    text = table({"main": [first, second], "absent": [tmp_path / "c"]}).splitlines()
    assert "lowest to highest seed" in text[0]
    # area of the first: (1.5 + 3.5 + 4.5) of 19 steps = 0.5; of the second: 2
    assert text[2] == "| main | 3.00 [2.00, 4.00] | 4.00, 2.00 | 1.25 | 2,000 | 100 |"
    assert text[3] == "| absent | - | - | - | - | - |"


def test_the_mean_exists_only_where_all_curves_do() -> None:
    curves = [
        Curve(np.array([0.0, 100.0]), np.array([0.0, 10.0]), 1.0),
        Curve(np.array([20.0, 60.0]), np.array([4.0, 8.0]), 1.0),
    ]
    b = band(curves)
    assert (b.frames[0], b.frames[-1]) == (20.0, 60.0)
    assert (b.low[0], b.mean[0], b.high[0]) == pytest.approx((2.0, 3.0, 4.0))
    assert (b.low[-1], b.mean[-1], b.high[-1]) == pytest.approx((6.0, 7.0, 8.0))


def test_the_bootstrap_interval_is_that_of_the_mean() -> None:
    samples = np.random.default_rng(1).normal(5.0, 2.0, (400, 2))
    low, high = interval(samples)
    half = 1.96 * samples.std(0) / 20  # the normal approximation, good at 400 samples
    assert low == pytest.approx(samples.mean(0) - half, abs=0.03)
    assert high == pytest.approx(samples.mean(0) + half, abs=0.03)


def test_smoothing_keeps_constants_and_averages_neighbours() -> None:
    assert smoothed(np.full(3, 2.0), 5) == pytest.approx(np.full(3, 2.0))
    assert smoothed(np.array([0.0, 0.0, 5.0, 0.0, 0.0]), 5) == pytest.approx([5 / 3, 1.25, 1.0, 1.25, 5 / 3])
    assert smoothed(np.array([1.0, 2.0, 4.0]), 1) == pytest.approx([1.0, 2.0, 4.0])


def test_names_at_the_ends_of_curves_do_not_overlap() -> None:
    apart = spread({"a": 0.1, "b": 0.9}, 0.05)
    assert apart == {"a": 0.1, "b": 0.9}
    crowded = spread({str(i): 0.001 * i for i in range(10)}, 0.05)
    places = [crowded[str(i)] for i in range(10)]
    assert np.diff(places) == pytest.approx(np.full(9, 0.05))
    assert places[0] == pytest.approx(0.0)
