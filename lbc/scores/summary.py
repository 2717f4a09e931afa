"""Everything that is said about one agent, from its raw scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lbc.scores.aggregate import Aggregate, aggregate
from lbc.scores.efficiency import game_time, learning_efficiency
from lbc.scores.estimate import ATARI_3_VAL, ATARI_5, estimate
from lbc.scores.normalise import breaks_record, hns, hwrns, saber
from lbc.scores.reference import AGENTS, Game, games, published


@dataclass(frozen=True)
class Column:
    """Raw scores of one agent; also of the runs of one card."""

    name: str
    frames: float  # of training, per game
    scores: Mapping[str, np.ndarray]  # game -> [seeds]
    published: bool = False

    def score(self, game: str) -> float | None:
        """Mean of the seeds; None where the game was not played."""
        return float(np.mean(self.scores[game])) if game in self.scores else None

    def measured(self, measure: Measure) -> dict[str, float]:
        """Game -> its score by one measure."""
        return {name: float(np.mean(measure(seeds, games()[name]))) for name, seeds in self.scores.items()}

    def only(self, names: Collection[str]) -> Column:
        kept = {name: seeds for name, seeds in self.scores.items() if name in names}
        return Column(self.name, self.frames, kept, self.published)

    @property
    def seeds(self) -> tuple[int, int]:
        """Fewest and most of any game."""
        counts = [len(seeds) for seeds in self.scores.values()]
        return min(counts), max(counts)


Measure = Callable[[np.ndarray, Game], np.ndarray]

MEASURES: Mapping[str, Measure] = {
    "score": lambda seeds, game: seeds,
    "hns": lambda seeds, game: hns(seeds, game.random, game.human),
    "hwrns": lambda seeds, game: hwrns(seeds, game.random, game.record),
    "saber": lambda seeds, game: saber(seeds, game.random, game.record),
}


@dataclass(frozen=True)
class Summary:
    """Aggregates of one column, in percent unless stated."""

    column: Column
    hns: Aggregate
    hwrns: Aggregate
    saber: Aggregate
    hwrb: int  # records reached
    days: float  # of game time
    efficiency: Mapping[str, float]  # per frame, as fractions: hns/mean, hns/median, hwrb, ...
    atari_5: float | None
    atari_3_val: float | None

    @property
    def name(self) -> str:
        return self.column.name


def published_columns() -> list[Column]:
    """The agents of the paper's tables, one score per game."""
    return [
        Column(
            agent.name,
            agent.frames,
            {game: np.array([score]) for game, score in published(agent.key).items()},
            published=True,
        )
        for agent in AGENTS
    ]


def records(column: Column) -> list[str]:
    """Games whose human world record the column's mean score reaches."""
    return [
        name
        for name, seeds in column.scores.items()
        if breaks_record(float(np.mean(seeds)), games()[name].record)
    ]


def summarise(column: Column) -> Summary:
    if not column.scores:
        raise ValueError(f"{column.name} has no games to summarise")
    by_measure = {
        name: aggregate([MEASURES[name](seeds, games()[game]) for game, seeds in column.scores.items()])
        for name in ("hns", "hwrns", "saber")
    }
    broken = len(records(column))
    results: dict[str, float] = {"hwrb": broken}
    for name, found in by_measure.items():
        results[f"{name}/mean"] = found.mean.value / 100.0
        results[f"{name}/median"] = found.median.value / 100.0
    by_game = column.measured(MEASURES["hns"])
    return Summary(
        column,
        by_measure["hns"],
        by_measure["hwrns"],
        by_measure["saber"],
        broken,
        game_time(column.frames),
        {name: learning_efficiency(result, column.frames) for name, result in results.items()},
        estimate(by_game, ATARI_5),
        estimate(by_game, ATARI_3_VAL),
    )


def on_common_games(columns: Sequence[Column]) -> list[Column]:
    """All columns on the games of the user's ones; a column that shares none of them is left out."""
    wanted = {game for column in columns if not column.published for game in column.scores}
    return [cut for column in columns if (cut := column.only(wanted)).scores]
