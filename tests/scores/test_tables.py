from __future__ import annotations

import csv
import io

import pytest

from lbc.scores import published_columns, summarise
from lbc.scores.aggregate import Estimate
from lbc.scores.report import aggregate_tables, errata_tables
from lbc.scores.tables import Heading, Table, display, render, short, shown

TABLE = Table(
    "Scores & more",
    (Heading("agent"), Heading("HNS", ",.2f"), Heading("IQM", ",.1f")),
    (("a|b_c", 12345.678, Estimate(10.04, 9.0, 11.25)), ("none", None, Estimate(3.0))),
    ("One note: 5% of a < b.",),
)


def test_plain_text_is_aligned() -> None:
    assert render([TABLE], "text") == (
        "Scores & more\n"
        "\n"
        "agent        HNS               IQM\n"
        "-----  ---------  ----------------\n"
        "a|b_c  12,345.68  10.0 [9.0, 11.2]\n"
        "none           –               3.0\n"
        "\n"
        "One note: 5% of a < b.\n"
    )


def test_markdown() -> None:
    assert render([TABLE], "markdown").splitlines() == [
        "**Scores & more**",
        "",
        "| agent | HNS | IQM |",
        "|---|---:|---:|",
        r"| a\|b_c | 12,345.68 | 10.0 [9.0, 11.2] |",
        "| none | – | 3.0 |",
        "",
        "One note: 5% of a < b.",
    ]


def test_latex_escapes_what_latex_would_obey() -> None:
    text = render([TABLE], "latex")
    assert r"\caption{Scores \& more}" in text
    assert r"a$|$b\_c & 12,345.68 & 10.0 [9.0, 11.2] \\" in text
    assert r"5\% of a $<$ b" in text
    assert r"\begin{tabular}{lrr}" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2


def test_latex_takes_no_first_cell_for_an_option_of_the_line_before() -> None:
    table = Table("t", (Heading("agent"),), (("[mine]",),))
    assert "{}[mine] \\\\" in render([table], "latex")


def test_csv_keeps_every_digit_and_splits_intervals() -> None:
    rows = list(csv.reader(io.StringIO(render([TABLE], "csv"))))
    assert rows == [
        ["agent", "HNS", "IQM", "IQM low", "IQM high"],
        ["a|b_c", "12345.678", "10.04", "9.0", "11.25"],
        ["none", "", "3.0", "", ""],
    ]


def test_rich_shows_the_same_cells() -> None:
    pytest.importorskip("rich")
    stream = io.StringIO()
    display([TABLE], stream)
    said = stream.getvalue()
    assert all(cell in said for row in TABLE.texts() for cell in row)
    assert "[9.0, 11.2]" in said  # brackets are no markup


def test_a_narrow_terminal_cuts_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "80")
    tables = [*aggregate_tables([summarise(column) for column in published_columns()]), *errata_tables()]
    stream = io.StringIO()
    display(tables, stream)
    said = stream.getvalue()
    words = {word for table in tables for row in table.texts() for cell in row for word in cell.split()}
    assert not [word for word in words if word not in said]
    assert "…" not in said


def test_a_row_that_does_not_fit_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Table("t", (Heading("a"),), (("1", "2"),))


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        (999_844, "1M"),
        (999_400, "999K"),
        (400_000, "400K"),
        (1e9, "1B"),
        (29_627_096, "29.6M"),
        (1e11, "100B"),
        (12, "12"),
    ],
)
def test_frames_in_short(frames: float, text: str) -> None:
    assert short(frames) == text


def test_a_cell() -> None:
    assert shown(3, "d") == "3"
    assert shown("text", ",.2f") == "text"
    assert shown(None) == "–"
