"""Summaries as tables."""

from __future__ import annotations

from collections.abc import Sequence

from lbc.scores.aggregate import REPETITIONS, Aggregate
from lbc.scores.errata import errata, mean_with_elsewhere, reference_errata
from lbc.scores.estimate import ATARI_3_VAL, ATARI_5, missing
from lbc.scores.reference import games
from lbc.scores.summary import MEASURES, Column, Summary
from lbc.scores.tables import Cell, Heading, Table, short

_MEASURES = {
    "score": "Raw scores",
    "hns": "Human-normalised scores (HNS, %)",
    "hwrns": "Scores normalised by the human world record (HWRNS, %)",
    "saber": "SABER, the same cut off at 200 (%)",
}
_ONE_GAME = 0.25  # share of a mean that deserves a word
_QUANTITIES = {
    "hwrb": "HWRB",
    "days": "game time in days",
    **{
        f"{measure}/{way}": f"{way} {measure.upper()}"
        for measure in ("hns", "hwrns", "saber")
        for way in ("mean", "median")
    },
}


def aggregate_tables(summaries: Sequence[Summary]) -> list[Table]:
    """HNS with intervals, records, and cost."""
    return [_hns_table(summaries), _record_table(summaries), _cost_table(summaries)]


def _hns_table(summaries: Sequence[Summary]) -> Table:
    kinds = sorted({s.hns.resampled for s in summaries if s.hns.resampled})
    return Table(
        _MEASURES["hns"],
        (
            *(Heading("agent"), Heading("frames", "s"), Heading("games", "d"), Heading("seeds", "s")),
            *(Heading("mean", ",.2f"), Heading("median", ",.2f"), Heading("IQM", ",.2f")),
        ),
        tuple(
            (
                *(s.name, short(s.column.frames), len(s.column.scores), _seeds(s.column)),
                *(s.hns.mean, s.hns.median, s.hns.iqm),
            )
            for s in summaries
        ),
        (
            *(
                (f"In brackets: 95% bootstrap intervals, {REPETITIONS} resamples of {_over(kinds)}.",)
                if kinds
                else ()
            ),
            *_carried(summaries),
        ),
    )


def _over(kinds: Sequence[str]) -> str:
    games_only, seeds_only = "the games, of which each has one score", "the seeds inside each game"
    if len(kinds) == 2:
        return f"{games_only}, or, in columns with several seeds, of {seeds_only}"
    return games_only if kinds[0] == "games" else seeds_only


def _carried(summaries: Sequence[Summary]) -> list[str]:
    """A mean that one game makes is no mean of many; said for every agent that it is true of."""
    notes = []
    for summary in summaries:
        shares = {name: hns / len(summary.column.scores) for name, hns in _hns(summary.column).items()}
        game = max(shares, key=lambda name: shares[name])
        if len(shares) > 1 and shares[game] > _ONE_GAME * abs(summary.hns.mean.value):
            notes.append(
                f"One game, {game}, supplies {shares[game]:,.0f} of {summary.name}'s mean of"
                f" {summary.hns.mean.value:,.0f}."
            )
    return notes


def _record_table(summaries: Sequence[Summary]) -> Table:
    return Table(
        "Human world records",
        (
            *(Heading("agent"), Heading("HWRB", "d"), Heading("of games", "d")),
            *(Heading(f"HWRNS {way}", ",.2f") for way in ("mean", "median", "IQM")),
            *(Heading(f"SABER {way}", ",.2f") for way in ("mean", "median", "IQM")),
        ),
        tuple(
            (s.name, s.hwrb, len(s.column.scores), *_values(s.hwrns), *_values(s.saber)) for s in summaries
        ),
        ("HWRB: records reached. HWRNS: 100 is the record (%). SABER: HWRNS cut off at 200 in each game.",),
    )


def _cost_table(summaries: Sequence[Summary]) -> Table:
    notes = [
        "Game days: time to watch the frames at 60 a second. Per frame: scores as fractions, 1 for 100%."
    ]
    for name, weights in (("Atari-5", ATARI_5), ("Atari-3-Val", ATARI_3_VAL)):
        gone = {s.name: missing(s.column.scores, weights) for s in summaries if not s.column.published}
        if any(gone.values()):
            lacking = [f"{agent} lacks {', '.join(some)}" for agent, some in gone.items() if some]
            some_are_there = any(0 < len(some) < len(weights) for some in gone.values())
            notes.append(
                f"{name} needs {', '.join(weights)}" + (f": {'; '.join(lacking)}." if some_are_there else ".")
            )
    return Table(
        "Cost, and the median HNS (%) that a few games predict",
        (
            *(Heading("agent"), Heading("frames", "s"), Heading("game days", ",.2f")),
            *(Heading(f"{name} / frame", ".2E") for name in ("mean HNS", "median HNS", "HWRB")),
            *(Heading("Atari-5", ",.2f"), Heading("Atari-3-Val", ",.2f")),
        ),
        tuple(
            (
                *(s.name, short(s.column.frames), s.days),
                *(s.efficiency[name] for name in ("hns/mean", "hns/median", "hwrb")),
                *(s.atari_5, s.atari_3_val),
            )
            for s in summaries
        ),
        tuple(notes),
    )


def wide_table(summaries: Sequence[Summary]) -> Table:
    """Every aggregate in one table, one row per agent, for programs that read CSV."""
    first = ("agent", "frames", "games", "fewest seeds", "most seeds")
    measures = [(name, way) for name in ("hns", "hwrns", "saber") for way in ("mean", "median", "iqm")]
    efficiencies = list(summaries[0].efficiency)
    return Table(
        "Aggregates",
        tuple(
            Heading(name)
            for name in (
                *first,
                *(f"{name} {way}" for name, way in measures),
                *("hwrb", "game days"),
                *(f"{name.replace('/', ' ')} per frame" for name in efficiencies),
                *("atari-5", "atari-3-val"),
            )
        ),
        tuple(
            (
                *(s.name, s.column.frames, len(s.column.scores), *s.column.seeds),
                *(getattr(getattr(s, name), way) for name, way in measures),
                *(s.hwrb, s.days, *(s.efficiency[name] for name in efficiencies)),
                *(s.atari_5, s.atari_3_val),
            )
            for s in summaries
        ),
    )


def game_table(columns: Sequence[Column], measure: str = "hns", note: str = "") -> Table:
    """One row per game that any column has."""
    names = [name for name in games() if any(name in column.scores for column in columns)]
    by_column = [column.measured(MEASURES[measure]) for column in columns]
    raw = measure == "score"
    references = (
        (Heading("random", ",.6g"), Heading("human", ",.6g"), Heading("record", ",.8g")) if raw else ()
    )
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        game = games()[name]
        start = (name, game.random, game.human, game.record) if raw else (name,)
        rows.append((*start, *(found.get(name) for found in by_column)))
    return Table(
        f"{_MEASURES[measure]}, game by game",
        (Heading("game"), *references, *(Heading(column.name, ",.2f") for column in columns)),
        tuple(rows),
        (note,) if note else (),
    )


def errata_tables() -> list[Table]:
    cells = Table(
        "Errata: printed numbers that the paper's raw scores contradict",
        (
            *(Heading("where"), Heading("agent"), Heading("what")),
            *(Heading("printed", "s"), Heading("recomputed", "s"), Heading("note")),
        ),
        tuple(
            (e.where, e.agent, _quantity(e.what), e.printed, _like(e.recomputed, e.printed), e.note)
            for e in errata()
        ),
    )
    references = reference_errata()
    changed = mean_with_elsewhere()
    return [
        cells,
        Table(
            "Errata: reference scores that are printed otherwise elsewhere",
            (
                *(
                    Heading("game"),
                    Heading("column"),
                    Heading("printed", ",.1f"),
                    Heading("elsewhere", ",.1f"),
                ),
                *(Heading("LBC's HNS", ",.2f"), Heading("with the other", ",.2f")),
            ),
            tuple(
                (r.game, r.column, r.printed, r.elsewhere, r.lbc_hns, r.lbc_hns_elsewhere) for r in references
            ),
            (
                f"With all three as elsewhere, LBC's mean HNS is {changed:,.2f}."
                " Everything here uses the printed ones.",
            ),
        ),
    ]


def _hns(column: Column) -> dict[str, float]:
    return column.measured(MEASURES["hns"])


def _values(found: Aggregate) -> tuple[float, float, float]:
    return found.mean.value, found.median.value, found.iqm.value


def _seeds(column: Column) -> str:
    if column.published:
        return "–"
    fewest, most = column.seeds
    return str(most) if fewest == most else f"{fewest}–{most}"


def _quantity(name: str) -> str:
    per_frame = name.startswith("efficiency/")
    plain = name.removeprefix("efficiency/")
    return _QUANTITIES.get(plain, plain) + (" per frame" if per_frame else "")


def _like(value: float, printed: str) -> str:
    """``value`` in the notation of the printed number."""
    if "E" in printed:
        return f"{value:.2E}"
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"
