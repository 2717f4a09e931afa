"""A table once, in five forms: terminal, plain text, Markdown, CSV and LaTeX.

Cells are values, not text.  People get them rounded, with separators; CSV gets them in full.
"""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from lbc.scores.aggregate import Estimate

Cell = str | int | float | Estimate | None
FORMATS = ("text", "markdown", "csv", "latex", "json")
ENDINGS = {".txt": "text", ".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json"}
_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
    **{c: f"${c}$" for c in "<>|"},  # otherwise other characters in LaTeX's oldest encoding
    "–": "--",
}


@dataclass(frozen=True)
class Heading:
    name: str
    form: str = ""  # how a number is written, as in ",.2f"; text stands to the left, numbers to the right

    @property
    def numeric(self) -> bool:
        return bool(self.form)


@dataclass(frozen=True)
class Table:
    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.headings) for row in self.rows):
            raise ValueError(f"a row of '{self.title}' does not fit its headings")

    def texts(self) -> list[list[str]]:
        """The cells as people read them."""
        return [
            [shown(cell, heading.form) for cell, heading in zip(row, self.headings, strict=True)]
            for row in self.rows
        ]


def shown(cell: Cell, form: str = "") -> str:
    if cell is None:
        return "–"
    if isinstance(cell, Estimate):
        around = "" if cell.low is None else f" [{shown(cell.low, form)}, {shown(cell.high, form)}]"
        return shown(cell.value, form) + around
    return format(cell, form) if form and not isinstance(cell, str) else str(cell)


def short(value: float) -> str:
    """``2.5M`` for 2,500,000."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if abs(value) >= 0.9995 * size:  # what rounds to a thousand is one of the next unit
            return f"{value / size:.3g}{unit}"
    return f"{value:g}"


def render(tables: Sequence[Table], form: str) -> str:
    """``form`` is text, markdown, csv or latex; CSV takes one table, other forms any number."""
    if form == "csv":
        (table,) = tables
        return _csv(table)
    write = {"text": _text, "markdown": _markdown, "latex": _latex}[form]
    return "\n".join(write(table) for table in tables)


def show(tables: Sequence[Table], stream: TextIO) -> None:
    """To people: by rich on a terminal, as plain text elsewhere."""
    if stream.isatty() and importlib.util.find_spec("rich"):
        display(tables, stream)
    else:
        print(carried(render(tables, "text"), stream.encoding), end="", file=stream)


def carried(text: str, encoding: str | None) -> str:
    """``text`` as a terminal without Unicode can show it."""
    name = encoding or "ascii"
    try:
        text.encode(name)
    except UnicodeEncodeError:
        return text.replace("–", "-").encode(name, "replace").decode(name)
    return text


def display(tables: Sequence[Table], stream: TextIO) -> None:
    """By rich, for a terminal."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    console = Console(file=stream, highlight=False)
    narrow = console.width
    for table in tables:
        least = _least_widths(table)
        console.width = max(narrow, sum(least) + 3 * len(least) + 1)  # rather long lines than digits cut off
        drawn = RichTable(
            title=escape(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
        )
        for heading, width in zip(table.headings, least, strict=True):
            side: Literal["left", "right"] = "right" if heading.numeric else "left"
            drawn.add_column(escape(heading.name), justify=side, min_width=width)
        for row in table.texts():
            drawn.add_row(*map(escape, row))
        console.print(drawn, crop=False)
        console.width = narrow
        for note in table.notes:
            console.print(escape(note), style="dim")
        console.print()


def _least_widths(table: Table) -> list[int]:
    """Of columns whose cells may break at spaces only; the first one, names, not at all."""
    columns = list(zip([heading.name for heading in table.headings], *table.texts(), strict=True))
    names = max(len(cell) for cell in columns[0])
    return [
        names,
        *(max(len(word) for cell in cells for word in cell.split() or [""]) for cells in columns[1:]),
    ]


def _text(table: Table) -> str:
    lines = [[heading.name for heading in table.headings], *table.texts()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headings))]

    def aligned(line: Sequence[str]) -> str:
        cells = zip(line, widths, table.headings, strict=True)
        return "  ".join(f"{t:>{w}}" if h.numeric else f"{t:<{w}}" for t, w, h in cells).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([table.title, "", aligned(lines[0]), rule, *map(aligned, lines[1:]), *_noted(table), ""])


def _markdown(table: Table) -> str:
    def line(cells: Iterator[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    head = line(heading.name for heading in table.headings)
    rule = "|" + "|".join("---:" if heading.numeric else "---" for heading in table.headings) + "|"
    return "\n".join(
        [
            f"**{table.title}**",
            "",
            head,
            rule,
            *(line(iter(row)) for row in table.texts()),
            *_noted(table),
            "",
        ]
    )


def _latex(table: Table) -> str:
    def line(cells: Iterator[str]) -> str:
        text = " & ".join(_escaped(cell) for cell in cells) + r" \\"
        return "{}" + text if text.startswith("[") else text  # or it would belong to the line break above

    notes = [_escaped(note) + r" \\" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escaped(table.title)}}}",
            rf"\begin{{tabular}}{{{''.join('r' if h.numeric else 'l' for h in table.headings)}}}",
            r"\hline",
            line(heading.name for heading in table.headings),
            r"\hline",
            *(line(iter(row)) for row in table.texts()),
            r"\hline",
            r"\end{tabular}",
            *([r"\par\smallskip\footnotesize", *notes] if notes else []),
            r"\end{table}",
            "",
        ]
    )


def _csv(table: Table) -> str:
    """Numbers in full; an interval is two further columns."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    spread = [any(isinstance(row[i], Estimate) for row in table.rows) for i in range(len(table.headings))]
    header: list[str] = []
    for heading, wide in zip(table.headings, spread, strict=True):
        header += [heading.name, f"{heading.name} low", f"{heading.name} high"] if wide else [heading.name]
    writer.writerow(header)
    for row in table.rows:
        cells: list[Any] = []
        for cell, wide in zip(row, spread, strict=True):
            if wide:
                found = cell if isinstance(cell, Estimate) else None
                cells += [found.value, found.low, found.high] if found else [None, None, None]
            else:
                cells.append(cell)
        writer.writerow(cells)
    return file.getvalue()


def _noted(table: Table) -> list[str]:
    return ["", *table.notes] if table.notes else []


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)
