"""Printed cells of the paper that its own raw scores contradict.

``paper_games.csv`` and ``paper_aggregates.csv`` hold what is printed, digit by digit: 20 columns of the
eight tables of scores, their last rows, and the numbers that the source defines as macros.
A cell disagrees if the recomputed number does not round to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from lbc.scores.aggregate import mean
from lbc.scores.normalise import breaks_record, hns
from lbc.scores.reference import AGENTS, Game, games, published, rows
from lbc.scores.summary import Summary, published_columns, summarise

UNUSED = "the source, not printed"
_NAMES = {agent.key: agent.name for agent in AGENTS}
_TABLES = {
    "model-free": "model-free agents",
    "model-based": "model-based agents",
    "exploration": "exploration",
    "gdi": "GDI-H3 and LBC",
}
# (table, agent, game) -> what explains the cell; tests/scores/test_errata.py checks each
_WHY = {
    ("hns/gdi", "gdi_h3", "Crazy Climber"): "fits a human score of 35829.4",
    ("hns/gdi", "gdi_h3", "Time Pilot"): "fits a human score of 5229.1",
    ("hwrb/gdi", "gdi_h3", "Ice Hockey"): "the printed sum, 22, counts it",
    ("hwrb/gdi", "gdi_h3", "Robotank"): "the printed sum, 22, counts it",
    ("hwrb/gdi", "lbc_bm", "Robotank"): "the printed sum, 24, counts it",
}


@dataclass(frozen=True)
class Erratum:
    where: str
    agent: str
    what: str  # a game or an aggregate
    printed: str
    recomputed: float
    note: str = ""


@dataclass(frozen=True)
class ReferenceErratum:
    """A reference score that the rest of the literature prints otherwise, and what hangs on it."""

    game: str
    column: str  # random | human
    printed: float
    elsewhere: float
    lbc_hns: float  # percent, with the printed value
    lbc_hns_elsewhere: float


_ELSEWHERE = (
    ("Battle Zone", "random", 2360.0),
    ("Crazy Climber", "human", 35829.4),
    ("Video Pinball", "random", 16256.9),
)


def errata() -> list[Erratum]:
    """Table by table; last, the numbers that the source defines without printing them."""
    return sorted([*_games(), *_aggregates()], key=lambda found: (found.where == UNUSED, found.where))


def reference_errata() -> list[ReferenceErratum]:
    scores = published("lbc_bm")
    return [
        ReferenceErratum(
            name,
            column,
            getattr(games()[name], column),
            elsewhere,
            _hns(scores[name], games()[name]),
            _hns(scores[name], _replaced(games()[name], column, elsewhere)),
        )
        for name, column, elsewhere in _ELSEWHERE
    ]


def mean_with_elsewhere(key: str = "lbc_bm") -> float:
    """Mean HNS of an agent with the three reference scores as they are printed elsewhere."""
    changed = dict(games())
    for name, column, value in _ELSEWHERE:
        changed[name] = _replaced(changed[name], column, value)
    return mean([np.array([_hns(score, changed[game])]) for game, score in published(key).items()])


def agrees(recomputed: float, printed: str) -> bool:
    """Whether ``recomputed`` rounds to the digits of ``printed``."""
    exponent = Decimal(printed).as_tuple().exponent
    half = 0.5 * 10.0 ** int(exponent)
    return abs(recomputed - float(printed)) <= half * (1 + 1e-9)


def _games() -> Iterator[Erratum]:
    for row in rows("paper_games.csv"):
        game = games()[row["game"]]
        for column, printed in row.items():
            if column == "game" or not printed:
                continue
            measure, table, key = column.split("/")
            score = published(key)[game.name]
            recomputed = _hns(score, game) if measure == "hns" else float(breaks_record(score, game.record))
            if not agrees(recomputed, printed):
                where = f"{measure}/{table}"
                why = _WHY.get((where, key, game.name), "")
                yield Erratum(_shown(where), _NAMES[key], game.name, printed, recomputed, why)


def _aggregates() -> Iterator[Erratum]:
    columns = zip(AGENTS, published_columns(), strict=True)
    recomputed = {agent.key: quantities(summarise(column)) for agent, column in columns}
    for row in rows("paper_aggregates.csv"):
        where, key, quantity, printed = row["where"], row["agent"], row["quantity"], row["printed"]
        value = recomputed[key][quantity]
        if not agrees(value, printed):
            others = [_NAMES[other] for other in recomputed if agrees(recomputed[other][quantity], printed)]
            note = f"{others[0]}'s number" if others else ""
            yield Erratum(_shown(where), _NAMES[key], quantity, printed, value, note)


def quantities(summary: Summary) -> dict[str, float]:
    """Every aggregate of a summary under its name in ``paper_aggregates.csv``."""
    found: dict[str, float] = {"hwrb": summary.hwrb, "days": summary.days}
    for name, aggregate in (("hns", summary.hns), ("hwrns", summary.hwrns), ("saber", summary.saber)):
        found |= {f"{name}/mean": aggregate.mean.value, f"{name}/median": aggregate.median.value}
    return found | {f"efficiency/{name}": value for name, value in summary.efficiency.items()}


def _shown(where: str) -> str:
    if where == "macro":
        return UNUSED
    measure, table = where.split("/")
    return f"{measure.upper()} table, {_TABLES[table]}"


def _hns(score: float, game: Game) -> float:
    return hns(score, game.random, game.human)


def _replaced(game: Game, column: str, value: float) -> Game:
    return (
        dataclasses.replace(game, random=value)
        if column == "random"
        else dataclasses.replace(game, human=value)
    )
