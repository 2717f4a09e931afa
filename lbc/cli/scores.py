"""``lbc scores``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lbc.cli.listing import List
from lbc.cli.parsing import POSITIONAL, parse
from lbc.errors import UserError, nearest

if TYPE_CHECKING:
    from lbc.scores import Column, Run, Summary
    from lbc.scores.tables import Table


@dataclass(frozen=True)
class Scores:
    """Atari-57: the paper's tables recomputed, and your runs beside them.

    Args:
        runs: Run directories, or folders of them; seeds of one card and game are one entry.
        scoring: final (the last reported score) or max (the highest one).
        metric: score_mean (training episodes) or eval_score (the evaluator of runtime 'local').
        common: Compare on the games of the given runs only.
        games: Add the table of all games.
        measure: Of that table: hns, hwrns, saber or score.
        errata: Add the paper's numbers that its own raw scores contradict.
        json: Print one JSON object with everything.
        format: text, markdown, csv, latex or json; by default what the ending of --out says.
        out: File to write instead of the terminal.
        figures: Directory for pictures: aggregates, records, versus, and curves where runs are given.
        versus: Two agents or cards for the picture versus, as in MEME,LBC.
        own: One table of the given runs alone, of any task: score, evaluation, references, frames, minutes.
        refresh: A document; what stands between <!-- lbc scores ... --> and <!-- end --> in it becomes what
            that command says, with paths from where the document lies. (repeatable)
    """

    runs: Annotated[tuple[str, ...], POSITIONAL] = ()
    scoring: str = "final"
    metric: str = "score_mean"
    common: bool = False
    games: bool = False
    measure: str = "hns"
    errata: bool = False
    json: bool = False
    format: str | None = None
    out: str | None = None
    figures: str | None = None
    versus: str = "MEME,LBC"
    own: bool = False
    refresh: tuple[str, ...] = ()

    def run(self) -> int:
        if self.refresh:
            for path in self.refresh:
                refresh(Path(path))
            return 0
        text = self.told()
        if text is not None:
            self._write(text)
        return 0

    def told(self, folder: Path = Path()) -> str | None:
        """What there is to write, with paths from `folder`; None where a terminal has shown all of it."""
        from lbc.reporting.plain import plain
        from lbc.scores.document import document
        from lbc.scores.runs import METRICS, SCORINGS, columns, read_runs
        from lbc.scores.summary import MEASURES, on_common_games, published_columns, summarise
        from lbc.scores.tables import FORMATS

        _one_of("--scoring", self.scoring, SCORINGS)
        _one_of("--metric", self.metric, METRICS)
        _one_of("--measure", self.measure, tuple(MEASURES))
        form = self._form()
        _one_of("--format", form, FORMATS)
        if self.common and not self.runs:
            raise UserError("--common compares on the games of given runs; give at least one run directory.")
        for path in (*self.runs, self.out or "", self.figures or ""):
            if "\0" in path:
                raise UserError(f"'{path}' is no path.")
        if self.own:
            return self._own(form, folder)
        runs = read_runs([Path(path) for path in self.runs], self.metric)
        everyone = _distinct([*published_columns(), *columns(runs, self.scoring)])
        if self.common:
            everyone = on_common_games(everyone)
        pair = _pair(self.versus, everyone) if self.figures else None
        summaries = [summarise(column) for column in everyone]
        if self.figures is not None and pair is not None:
            _draw(Path(self.figures), summaries, everyone, runs, pair)
        if form == "json":
            found = {"scoring": self._scoring(runs), **document(summaries, everyone)}
            return json.dumps(plain(found), indent=1, allow_nan=False) + "\n"
        return self._shown(self._tables(summaries, everyone, runs, form), form)

    def _shown(self, tables: list[Table], form: str) -> str | None:
        from lbc.scores.tables import render, show

        if form == "text" and self.out is None:
            show(tables, sys.stdout)
            return None
        return render(tables, form)

    def _own(self, form: str, folder: Path) -> str | None:
        from lbc.reporting.plain import plain
        from lbc.scores.results import results, results_table

        if not self.runs:
            raise UserError("--own is a table of given runs; give at least one run directory.")
        default = Scores()
        for name in ("scoring", "metric", "common", "games", "measure", "errata", "figures", "versus"):
            if getattr(self, name) != getattr(default, name):
                raise UserError(f"--own has no --{name}; leave one of the two out.")
        runs = results([Path(path) for path in self.runs])
        if form == "json":
            return json.dumps(plain([asdict(run) for run in runs]), indent=1, allow_nan=False) + "\n"
        return self._shown([results_table(runs, folder)], form)

    def _form(self) -> str:
        from lbc.scores.tables import ENDINGS

        if self.json and self.format not in (None, "json"):
            raise UserError(f"--json and --format {self.format} contradict each other.")
        if self.json:
            return "json"
        return self.format or ENDINGS.get(Path(self.out or "").suffix.lower(), "text")

    def _tables(
        self, summaries: Sequence[Summary], columns: Sequence[Column], runs: Sequence[Run], form: str
    ) -> list[Table]:
        from lbc.scores.report import aggregate_tables, errata_tables, game_table, wide_table

        if form == "csv":
            if self.games and self.errata:
                raise UserError("CSV holds one table: --games or --errata, not both.")
            if self.errata:
                return errata_tables()[:1]
            return [game_table(columns, self.measure)] if self.games else [wide_table(summaries)]
        tables = aggregate_tables(summaries)
        if self.games:
            tables.append(game_table(columns, self.measure, self._how(runs)))
        elif runs:
            played = {run.game.name for run in runs}
            shared = [cut for column in columns if (cut := column.only(played)).scores]
            tables.append(game_table(shared, self.measure, self._how(runs)))
        return [*tables, *(errata_tables() if self.errata else ())]

    def _how(self, runs: Sequence[Run]) -> str:
        """How the user's runs were scored, in words."""
        if not runs:
            return ""
        which = "last" if self.scoring == "final" else "highest"
        if self.metric == "eval_score":
            return f"Your runs: the {which} evaluation of the favourite behavior, mean over seeds."
        windows = " or ".join(str(window) for window in sorted({run.window for run in runs}))
        return f"Your runs: the {which} reported mean of {windows} training episodes, mean over seeds."

    def _scoring(self, runs: Sequence[Run]) -> dict[str, object] | None:
        if not runs:
            return None
        directories = [
            {"directory": str(run.path), "game": run.game.name, "seed": run.seed, "window": run.window}
            for run in runs
        ]
        return {"way": self.scoring, "metric": self.metric, "runs": directories}

    def _write(self, text: str) -> None:
        from lbc.scores.tables import carried

        if self.out is None:
            print(carried(text, sys.stdout.encoding), end="")
        else:
            path = Path(self.out)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


_BLOCK = re.compile(r"(<!-- lbc scores (?P<words>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def refresh(document: Path) -> None:
    """Fills the blocks of a document with what their commands say."""
    path = str(document)
    try:
        text = document.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"'{path}' is no text that can be read.") from None
    filled = refreshed(text, document.parent)
    if filled != text:
        document.write_text(filled, encoding="utf-8")
    print(f"{path}: {len(_BLOCK.findall(text))} tables, {'changed' if filled != text else 'as they were'}")


def refreshed(text: str, folder: Path) -> str:
    def block(found: re.Match[str]) -> str:
        words = ["scores", *shlex.split(found["words"]), "--format", "markdown"]
        command = parse({"scores": Scores, "list": List}, words)  # two, as one alone would not be named
        assert isinstance(command, Scores)
        command = replace(command, runs=tuple(str(folder / run) for run in command.runs))
        return f"{found[1]}{command.told(folder)}{found[3]}"

    return _BLOCK.sub(block, text)


def _one_of(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UserError(f"{option} is '{value}', but must be {', '.join(choices[:-1])} or {choices[-1]}.")


def _distinct(columns: Sequence[Column]) -> list[Column]:
    """A card that is called like a published agent gets its name in a form of its own."""
    taken = {column.name for column in columns if column.published}
    return [
        replace(column, name=f"{column.name} (yours)")
        if not column.published and column.name in taken
        else column
        for column in columns
    ]


def _pair(text: str, columns: Sequence[Column]) -> tuple[Column, Column]:
    names = {column.name: column for column in columns}
    wanted = [name.strip() for name in text.split(",")]
    if len(wanted) != 2 or wanted[0] == wanted[1]:
        raise UserError(f"--versus is '{text}', but must be two names with a comma between, as in MEME,LBC.")
    for name in wanted:
        if name not in names:
            raise UserError(f"--versus names '{name}'; there are {', '.join(names)}.{nearest(name, names)}")
    first, second = names[wanted[0]], names[wanted[1]]
    if not set(first.scores) & set(second.scores):
        raise UserError(f"--versus: {first.name} and {second.name} have no game in common.")
    return first, second


def _draw(
    folder: Path,
    summaries: Sequence[Summary],
    columns: Sequence[Column],
    runs: Sequence[Run],
    pair: tuple[Column, Column],
) -> None:
    from lbc.scores import figures

    figures.aggregates(summaries, folder / "aggregates.png")
    figures.world_records(columns, folder / "records.png")
    figures.versus(*pair, folder / "versus.png")
    if runs:
        figures.learning_curves(runs, folder / "curves.png")
