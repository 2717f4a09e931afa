"""``lbc eval`` and ``lbc play``; what they need is imported when they run, so that help answers at once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbc.errors import UserError, nearest

if TYPE_CHECKING:
    import numpy as np

    from lbc.agents import Agent, Scores


@dataclass(frozen=True)
class Eval:
    """Play whole episodes with a trained agent, in every way that it can play.

    favourite is the behavior that the controller favours, training those that it draws while training,
    component_i policy i alone.

    Args:
        directory: Directory of the run.
        episodes: In each way.
        ways: Which, as in favourite training component_1; by default all.
        seed: Of games and actions.
        device: Where the policies think: cpu, cuda, or auto.
        json: Print one JSON object instead of a table.
        allow_code: Import the code that the run names as module:factory.
    """

    directory: str
    episodes: int = 32
    ways: tuple[str, ...] = ()
    seed: int = 0
    device: str = "auto"
    json: bool = False
    allow_code: bool = False

    def run(self) -> int:
        from lbc.agents import directory_of, evaluate, load_agent, place_for
        from lbc.reporting import RunDirectory

        agent = load_agent(self.directory, self.device, self.allow_code)
        told = _Progress().told if sys.stderr.isatty() else None
        scores = evaluate(agent, self.episodes, self.seed, told, self.ways)
        ways = sorted(scores, key=lambda way: way.startswith("component"))  # both mixtures first
        found = {way: _facts(scores[way]) | _beside_humans(agent.spec.id, scores[way]) for way in ways}
        head = {"environment": agent.spec.id, "frames": agent.frames, "seed": self.seed}
        head |= {"protocol": _protocol(agent), "favourite_psi": agent.favourite.tolist()}
        played = {way: facts | _episodes(scores[way]) for way, facts in found.items()}
        keep = RunDirectory(directory_of(self.directory)).evaluation
        if place_for(self.directory, keep.name) == keep:  # not for agents that come with lbc
            kept = json.dumps(head | {"ways": _earlier(keep, head) | played}, indent=1)
            keep.write_text(kept + "\n", encoding="utf-8")
        if self.json:
            print(json.dumps(head | {"ways": played}, indent=1))
            return 0
        print(f"{agent.spec.id}, {self.episodes} episodes in each way, {agent.frames:,} frames of training")
        said = [f"{name.replace('_', ' ')} {_number(value)}" for name, value in _protocol(agent).items()]
        if said:
            print("; ".join(said))
        columns = [column for column in _COLUMNS if column in next(iter(found.values()))]
        print(f"{'way':<14}" + "".join(f" {_COLUMNS[column]:>10}" for column in columns))
        for way, facts in found.items():
            print(f"{way:<14}" + "".join(" " + _cell(facts[column], 10) for column in columns))
        return 0


@dataclass(frozen=True)
class Play:
    """Film a trained agent, or watch it in a window, with every policy's opinion beside the game.

    Args:
        directory: Directory of the run, or the name of an agent that comes with lbc, as in lbc play pong.
        out: The film, .gif or .mp4 (extra 'video'); by default play.gif in the run's directory.
        window: Watch episode after episode in a window (extra 'video'); --out films them, too.
        way: favourite, or component_1 and so on.
        seed: Of the game and the actions.
        steps: Length of the film at most; by default 600, in a window for ever.
        fps: Steps per second; 15 is an Atari game's own speed.
        allow_code: Import the code that the run names as module:factory.
    """

    directory: str
    out: str | None = None
    window: bool = False
    way: str = "favourite"
    seed: int = 0
    steps: int | None = None
    fps: float = 15.0
    allow_code: bool = False

    def run(self) -> int:
        from lbc.agents import load_agent, place_for
        from lbc.agents.evaluation import fixed_ways
        from lbc.agents.film import can_save, save
        from lbc.agents.window import KEYS, Window

        steps = self.steps or (None if self.window else 600)
        if (self.steps is not None and self.steps < 1) or not 0 < self.fps <= 1000:
            raise UserError("--steps must be at least 1, and --fps above 0 and at most 1000.")
        path = Path(self.out or place_for(self.directory, "play.gif"))
        can_save(path)
        window = Window(Path(self.directory).name, self.fps) if self.window else None
        agent = load_agent(self.directory, "cpu", self.allow_code)
        ways = fixed_ways(agent)
        if self.way not in ways:
            raise UserError(f"'{self.way}' is no way to play.{nearest(self.way, list(ways))}")
        show = _Show(agent, ways[self.way], self.seed, steps, endless=self.window)
        pictures: Iterable[Any] = show.pictures()
        if window is not None:
            print(f"{agent.spec.id} in a window: {KEYS}.", flush=True)
            pictures = window.show(pictures)
        if window is not None and self.out is None:
            print(f"{sum(1 for _ in pictures)} steps of {agent.spec.id}, {show.says()}")
        else:
            count = save(pictures, path, self.fps)
            print(f"{path}: {count} steps of {agent.spec.id}, {show.says()}")
        return 0


class _Show:
    """Pictures of one episode, or of one after the other, and what became of them."""

    def __init__(self, agent: Agent, psi: np.ndarray, seed: int, steps: int | None, endless: bool) -> None:
        self._agent, self._psi, self._seed = agent, psi, seed
        self._steps, self._endless = steps, endless
        self._scores: list[float] = []  # of episodes; the last one may have been broken off

    def pictures(self) -> Iterator[Any]:
        from lbc.agents.film import Sheet, play

        sheet, left = Sheet(self._agent), self._steps
        while left is None or left > 0:
            self._scores.append(0.0)
            seed = (self._seed + len(self._scores) - 1) % 2**31
            for scene in play(self._agent, self._psi, seed, left):
                self._scores[-1] = scene.score
                left = None if left is None else left - 1
                yield sheet.draw(scene)
            if not self._endless:
                return

    def says(self) -> str:
        last = [f"{score:g}" for score in self._scores[-8:]]
        return f"score{'s' * (len(last) > 1)} {'..., ' * (len(self._scores) > 8)}{', '.join(last)}"


_COLUMNS = {
    "mean": "mean",
    "standard_error": "std. error",
    "median": "median",
    "lowest": "lowest",
    "best": "best",
    "different": "different",
    "human_normalised": "HNS %",
    "record_normalised": "HWRNS %",
}


class _Progress:
    """A line that counts, while somebody looks at it."""

    def __init__(self) -> None:
        self._begun = self._said = time.monotonic()

    def told(self, ended: int, of: int) -> None:
        now, done = time.monotonic(), ended == of
        if now - self._said < 0.2 and not done:
            return
        self._said = now
        line = "" if done else f"{ended} of {of} episodes have ended, {now - self._begun:.0f} s"
        print(f"\r{line:<60}", end="\r" if done else "", file=sys.stderr, flush=True)


def _protocol(agent: Agent) -> dict[str, float | bool]:
    """Under which rules a score counts; what does not concern the game's family is left out."""
    game = agent.config.environment
    if game.id.startswith("ALE/"):
        names = ["max_noops", "sticky_actions", "action_repeat", "max_episode_frames", "full_action_space"]
        names += ["life_information"] if game.life_information else []  # of its learners; games are the same
    else:
        limit = ["max_episode_steps"] if game.max_episode_steps else []
        names = (["minatar_sticky", "minatar_ramping"] if game.id.startswith("MinAtar/") else []) + limit
    return {name: getattr(game, name) for name in names}


def _number(value: float | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:,g}"


def _facts(scores: Scores) -> dict[str, Any]:
    facts = {
        "mean": scores.mean,
        "standard_error": scores.standard_error,
        "median": scores.median,
        "lowest": scores.lowest,
        "best": scores.best,
        "different": scores.different,
    }
    return {name: value if value == value else None for name, value in facts.items()}


def _earlier(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """What the same agent played before, by the same rules; to be kept where it is not played again."""
    from lbc.reporting.rundir import read_json

    found = read_json(path)
    ways = found.pop("ways", None)
    return ways if found == head and isinstance(ways, dict) else {}


def _episodes(scores: Scores) -> dict[str, list[float]]:
    steps = {} if scores.steps is None else {"steps": scores.steps.tolist()}
    return {"scores": scores.episodes.tolist()} | steps


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
    return f"{'-' if value is None else format(value, ',d' if isinstance(value, int) else ',.2f'):>{width}}"
