"""Where a suite stands, as tables: what is planned, what each run has reached, what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbc.reporting.progress import clock
from lbc.scores import Column, find_game, summarise
from lbc.scores.report import aggregate_tables
from lbc.scores.tables import Cell, Heading, Table, render, short
from lbc.studies.display import Row, overall
from lbc.studies.presentation import write_rows
from lbc.studies.run import Run
from lbc.studies.state import DONE, FAILED, State, Watch, grouped, mean, seconds_left, word_of


def states_of(runs: Sequence[Run]) -> list[State]:
    """As their directories tell; of runs that nobody is at work on."""
    return [Watch(run).state(word_of(run)) for run in runs]


def plan_table(states: Sequence[State], jobs: int) -> Table:
    """What is done and what is to be done, one row per game and card."""
    rows: list[tuple[Cell, ...]] = []
    for group in grouped(states):
        cells = Row(tuple(group)).cells()
        seeds = ", ".join(str(state.run.seed) for state in group)
        budget = f"{group[0].run.minutes:g} min" if group[0].run.minutes else short(group[0].run.frames)
        left = seconds_left(group)
        rows.append(
            (
                *(cells["game"], cells["card"], seeds, cells["state"], budget, cells["%"] or None),
                None if left is None else clock(left),
            )
        )
    total = seconds_left(states, jobs)
    frames = sum(state.run.frames for state in states if not state.run.minutes)
    played = sum(state.frames for state in states if not state.run.minutes)
    notes = [f"{'  '.join(overall(states, jobs)).strip()}."]
    if frames:
        notes.append(f"{short(max(0, frames - played))} of {short(frames)} frames are to be played.")
    if total is None:
        notes.append("How long that takes is known when the first run has reported.")
    headings = ("game", "card", "seeds", "state"), ("budget", "done", "time left")
    return Table(
        "The queue",
        (*(Heading(name) for name in headings[0]), *(Heading(name, "s") for name in headings[1])),
        tuple(rows),
        tuple(notes),
    )


def score_tables(states: Sequence[State], evaluate: int) -> list[Table]:
    """Scores of what has finished: game by game, and Atari's aggregates as `lbc scores` has them."""
    done = [state for state in states if state.word == DONE and state.score is not None]
    if not done:
        return []
    cards = list(dict.fromkeys(state.run.variant.label for state in done))
    tables = [_game_table(done, cards, evaluate)]
    columns = [column for card in cards if (column := _column(card, done)).scores]
    if columns:
        tables.append(aggregate_tables([summarise(column) for column in columns])[0])
    return tables


def write(states: Sequence[State], evaluate: int, out: Path) -> tuple[list[Table], list[Path]]:
    """Writes ``suite.csv`` and, when something has finished, ``suite.md``; returns tables and paths."""
    runs, page = out / "suite.csv", out / "suite.md"
    write_rows([_row(state, evaluate) for state in states], runs)
    tables = score_tables(states, evaluate)
    if tables:
        page.write_text(render(tables, "markdown"), encoding="utf-8")
    return tables, [runs, *([page] if tables else [])]


def _game_table(done: Sequence[State], cards: Sequence[str], evaluate: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    games = dict.fromkeys(state.run.variant.task for state in done)
    references = any(find_game(game) for game in games)
    for name in games:
        cells: list[Cell] = [name]
        for card in cards:
            seeds = [s for s in done if (s.run.variant.task, s.run.variant.label) == (name, card)]
            cells += [len(seeds), mean([state.score for state in seeds])]
            cells += [mean([state.human_normalised for state in seeds])] if references else []
            cells += [mean([state.run.evaluation(evaluate) for state in seeds])] if evaluate else []
        rows.append(tuple(cells))
    headings = [Heading("game")]
    for card in cards:
        front = f"{card} " if len(cards) > 1 else ""
        headings += [Heading(f"{front}seeds", "d"), Heading(f"{front}score", ",.2f")]
        headings += [Heading(f"{front}HNS %", ",.2f")] if references else []
        headings += [Heading(f"{front}evaluated", ",.2f")] if evaluate else []
    notes = ["Score: the last reported mean over training episodes, mean over seeds; finished runs only."]
    if evaluate:
        notes.append(f"Evaluated: {evaluate} episodes of the favoured behavior.")
    return Table("Scores, game by game", tuple(headings), tuple(rows), tuple(notes))


def _column(card: str, done: Sequence[State]) -> Column:
    """A card's Atari scores, as `lbc scores` takes them."""
    scores: dict[str, list[float]] = {}
    frames = 0
    for state in done:
        game = find_game(state.run.variant.task)
        if game is not None and state.score is not None and state.run.variant.label == card:
            scores.setdefault(game.name, []).append(state.score)
            frames = max(frames, state.frames)
    return Column(card, frames, {game: np.array(found) for game, found in scores.items()})


def _row(state: State, evaluate: int) -> dict[str, Any]:
    """One run, for programs."""
    run = state.run
    failed = state.word == FAILED
    return {
        "game": run.variant.task,
        "card": run.variant.label,
        "seed": run.seed,
        "state": state.word,
        "frames": state.frames,
        "seconds": round(state.seconds, 1),
        "score": state.score,
        "best": state.best,
        "human_normalised": state.human_normalised,
        "evaluated": run.evaluation(evaluate) if evaluate else None,
        "directory": str(run.path),
        "failure": run.failure.read_text(encoding="utf-8").strip() if failed else "",
    }
