"""``lbc eval``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    """

    directory: str
    episodes: int = 32
    seed: int = 0
    device: str = "auto"
    json: bool = False

    def run(self) -> int:
        from lbc.agents import evaluate, load_agent

        agent = load_agent(self.directory, self.device)
        scores = evaluate(agent, self.episodes, self.seed)
        found = {way: _facts(x) for way, x in scores.items()}
        if self.json:
            head = {"environment": agent.spec.id, "frames": agent.frames, "seed": self.seed}
            head |= {"favourite_psi": agent.favourite.tolist()}
            ways = {way: facts | {"scores": scores[way].episodes.tolist()} for way, facts in found.items()}
            print(json.dumps(head | {"ways": ways}, indent=1))
            return 0
        print(f"{agent.spec.id}, {self.episodes} episodes in each way, {agent.frames:,} frames of training")
        print(f"{'way':<14}{'mean':>12}{'error':>10}{'median':>12}{'lowest':>12}{'best':>12}")
        for way, facts in found.items():
            print(f"{way:<14}" + "".join(_cell(facts[key], width) for key, width in _COLUMNS))
        return 0


_COLUMNS = (("mean", 12), ("standard_error", 10), ("median", 12), ("lowest", 12), ("best", 12))


def _facts(scores: Scores) -> dict[str, Any]:
    facts = {
        "mean": scores.mean,
        "standard_error": scores.standard_error,
        "median": scores.median,
        "lowest": scores.lowest,
        "best": scores.best,
    }
    return {name: value if value == value else None for name, value in facts.items()}


def _cell(value: float | None, width: int) -> str:
    return f"{'-' if value is None else format(value, ',.2f'):>{width}}"
