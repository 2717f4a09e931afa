"""docs/scores.md shows what the command prints today."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from lbc.scores import published_columns, summarise
from lbc.scores.report import aggregate_tables, errata_tables
from lbc.scores.tables import render

PAGE = (Path(__file__).parent.parent.parent / "docs" / "scores.md").read_text()


def test_the_tables_are_up_to_date() -> None:
    tables = [*aggregate_tables([summarise(column) for column in published_columns()]), *errata_tables()]
    assert len(tables) == 5
    for table in tables:
        assert render([table], "markdown").strip() in PAGE, f"write '{table.title}' anew: lbc scores --errata"


def test_the_example_prints_what_it_says() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(example, "scores.md", "exec"), {})
    assert said.getvalue().split() == re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)


def test_its_pictures_are_there() -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", PAGE)
    assert len(pictures) == 4
    assert all((Path(__file__).parent.parent.parent / "docs" / picture).exists() for picture in pictures)
