"""``lbc eval`` and ``lbc play``; what they need is imported when they run, so that help answers at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbc.errors import UserError, nearest

if TYPE_CHECKING:
    from lbc.agents import Scores


@dataclass(frozen=True)
class Eval:
    """Play whole episodes with a trained agent, in every way that it can play.

    Args:
        directory: Directory of the run.
        episodes: In each way.
        seed: Of games and actions.
        device: Where the policies think: cpu, cuda, or auto.
        json: Print one JSON object instead of a table.
        allow_code: Import the code that the run names as module:factory.
    """

    directory: str
    episodes: int = 32
    seed: int = 0
    device: str = "auto"
    json: bool = False
    allow_code: bool = False

    def run(self) -> int:
        from lbc.agents import evaluate, load_agent

        agent = load_agent(self.directory, self.device, self.allow_code)
        scores = evaluate(agent, self.episodes, self.seed)
        found = {way: _facts(x) | _beside_humans(agent.spec.id, x) for way, x in scores.items()}
        if self.json:
            head = {"environment": agent.spec.id, "frames": agent.frames, "seed": self.seed}
            head |= {"favourite_psi": agent.favourite.tolist()}
            ways = {way: facts | {"scores": scores[way].episodes.tolist()} for way, facts in found.items()}
            print(json.dumps(head | {"ways": ways}, indent=1))
            return 0
        print(f"{agent.spec.id}, {self.episodes} episodes in each way, {agent.frames:,} frames of training")
        columns = [column for column in _COLUMNS if column in found["favourite"]]
        print(f"{'way':<14}" + "".join(f"{_COLUMNS[column]:>12}" for column in columns))
        for way, facts in found.items():
            print(f"{way:<14}" + "".join(_cell(facts[column], 12) for column in columns))
        return 0


@dataclass(frozen=True)
class Play:
    """Film an episode of a trained agent, with every policy's opinion beside the game.

    Args:
        directory: Directory of the run.
        out: The film, .gif or .mp4; by default play.gif in the run's directory.
        way: favourite, or component_1 and so on.
        seed: Of the game and the actions.
        steps: Length of the film at most.
        fps: Steps per second in the film.
        allow_code: Import the code that the run names as module:factory.
    """

    directory: str
    out: str | None = None
    way: str = "favourite"
    seed: int = 0
    steps: int = 600
    fps: float = 15.0
    allow_code: bool = False

    def run(self) -> int:
        from lbc.agents import load_agent
        from lbc.agents.evaluation import fixed_ways
        from lbc.agents.film import Sheet, play, save

        if self.steps < 1 or not self.fps > 0:
            raise UserError("a film needs at least one step, and more than zero steps per second.")
        agent = load_agent(self.directory, "cpu", self.allow_code)
        ways = fixed_ways(agent)
        if self.way not in ways:
            raise UserError(f"'{self.way}' is no way to play.{nearest(self.way, list(ways))}")
        sheet, score = Sheet(agent), 0.0

        def pictures() -> Iterator[Any]:
            nonlocal score
            for scene in play(agent, ways[self.way], self.seed, self.steps):
                score = scene.score
                yield sheet.draw(scene)

        path = Path(self.out) if self.out else Path(self.directory) / "play.gif"
        count = save(pictures(), path, self.fps)
        print(f"{path}: {count} steps of {agent.spec.id}, score {score:g}")
        return 0


_COLUMNS = {
    "mean": "mean",
    "standard_error": "error",
    "median": "median",
    "lowest": "lowest",
    "best": "best",
    "human_normalised": "HNS %",
    "record_normalised": "HWRNS %",
}


def _facts(scores: Scores) -> dict[str, Any]:
    facts = {
        "mean": scores.mean,
        "standard_error": scores.standard_error,
        "median": scores.median,
        "lowest": scores.lowest,
        "best": scores.best,
    }
    return {name: value if value == value else None for name, value in facts.items()}


def _beside_humans(game_id: str, scores: Scores) -> dict[str, float]:
    """The mean in percent of an average human and of the world record, where the game has references."""
    from lbc.scores import find_game, hns, hwrns

    game = find_game(game_id)
    if game is None:
        return {}
    return {
        "human_normalised": hns(scores.mean, game.random, game.human),
        "record_normalised": hwrns(scores.mean, game.random, game.record),
    }


def _cell(value: float | None, width: int) -> str:
    return f"{'-' if value is None else format(value, ',.2f'):>{width}}"
