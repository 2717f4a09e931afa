"""Scores of Atari-57: normalised, aggregated, estimated, compared, drawn.

::

    from lbc.scores import find_game, hns, published_columns, summarise

    pong = find_game("ALE/Pong-v5")
    hns(19.2, pong.random, pong.human)                      # 113.03 percent
    for column in published_columns():
        summary = summarise(column)
        print(summary.name, summary.hns.iqm, summary.hwrb)  # value, low, high; world records
"""

from __future__ import annotations

from lbc.scores.aggregate import Aggregate, Estimate, aggregate, iqm, mean, median
from lbc.scores.efficiency import game_time, learning_efficiency
from lbc.scores.errata import Erratum, ReferenceErratum, errata, reference_errata
from lbc.scores.estimate import ATARI_3_VAL, ATARI_5, estimate
from lbc.scores.normalise import breaks_record, hns, hwrns, saber
from lbc.scores.reference import AGENTS, Agent, Game, find_game, games, published
from lbc.scores.runs import Run, columns, read_runs
from lbc.scores.summary import Column, Summary, published_columns, records, summarise

__all__ = [
    "AGENTS",
    "ATARI_3_VAL",
    "ATARI_5",
    "Agent",
    "Aggregate",
    "Column",
    "Erratum",
    "Estimate",
    "Game",
    "ReferenceErratum",
    "Run",
    "Summary",
    "aggregate",
    "breaks_record",
    "columns",
    "errata",
    "estimate",
    "find_game",
    "game_time",
    "games",
    "hns",
    "hwrns",
    "iqm",
    "learning_efficiency",
    "mean",
    "median",
    "published",
    "published_columns",
    "read_runs",
    "records",
    "reference_errata",
    "saber",
    "summarise",
]
