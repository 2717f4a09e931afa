"""Everything about a set of agents as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lbc.scores.aggregate import Aggregate
from lbc.scores.errata import errata, reference_errata
from lbc.scores.normalise import breaks_record
from lbc.scores.reference import games
from lbc.scores.summary import MEASURES, Column, Summary


def document(summaries: Sequence[Summary], columns: Sequence[Column]) -> dict[str, Any]:
    """Everything, for ``--json``; percentages unless the name says otherwise."""
    return {
        "unit": "percent",
        "agents": [_agent(summary) for summary in summaries],
        "games": [_game(name, columns) for name in games() if any(name in c.scores for c in columns)],
        "errata": [vars(erratum) for erratum in errata()],
        "reference_errata": [vars(erratum) for erratum in reference_errata()],
    }


def _agent(summary: Summary) -> dict[str, Any]:
    column = summary.column
    return {
        "name": summary.name,
        "published": column.published,
        "frames": column.frames,
        "game_time_days": summary.days,
        "games": len(column.scores),
        "seeds": list(column.seeds),
        **{name: _aggregate(getattr(summary, name)) for name in ("hns", "hwrns", "saber")},
        "hwrb": summary.hwrb,
        "learning_efficiency_per_frame": dict(summary.efficiency),
        "atari_5": summary.atari_5,
        "atari_3_val": summary.atari_3_val,
    }


def _aggregate(found: Aggregate) -> dict[str, Any]:
    ways = {way: vars(getattr(found, way)) for way in ("mean", "median", "iqm")}
    return {**ways, "interval_over": found.resampled or None}


def _game(name: str, columns: Sequence[Column]) -> dict[str, Any]:
    game = games()[name]
    agents = {}
    for column in columns:
        score = column.score(name)
        if score is not None:
            agents[column.name] = {
                **{measure: column.only([name]).measured(way)[name] for measure, way in MEASURES.items()},
                "hwrb": breaks_record(score, game.record),
                "seeds": column.scores[name].tolist(),
            }
    return {
        "game": name,
        "ale_id": game.ale_id,
        "random": game.random,
        "human": game.human,
        "world_record": game.record,
        "agents": agents,
    }
