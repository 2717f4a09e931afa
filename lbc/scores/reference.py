"""Raw scores of 57 Atari games, as the paper prints them: chance, people, records and seven agents.

They are data of this package (``atari57.csv``), so nothing here needs a network or a machine with runs.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from lbc.errors import nearest


@dataclass(frozen=True)
class Game:
    """One game and the three scores that others are measured by."""

    name: str
    ale_id: str
    random: float  # a policy that presses buttons by chance
    human: float  # average of people
    record: float  # human world record


@dataclass(frozen=True)
class Agent:
    """A published agent."""

    key: str  # its column in atari57.csv
    name: str
    frames: int  # of training, per game


# EfficientZero's "100K" counts decisions, of four frames each; all others count frames.
AGENTS = (
    Agent("agent57", "Agent57", 100_000_000_000),
    Agent("lbc_bm", "LBC", 1_000_000_000),
    Agent("meme", "MEME", 1_000_000_000),
    Agent("muzero", "MuZero", 20_000_000_000),
    Agent("efficientzero", "EfficientZero", 400_000),
    Agent("go_explore", "Go-Explore", 10_000_000_000),
    Agent("gdi_h3", "GDI-H3", 200_000_000),
)


@functools.cache
def games() -> Mapping[str, Game]:
    """Name -> game, in the order of the alphabet."""
    found = {
        row["game"]: Game(
            row["game"],
            row["ale_id"],
            float(row["random"]),
            float(row["human"]),
            float(row["human_world_record"]),
        )
        for row in rows("atari57.csv")
    }
    return MappingProxyType(found)


@functools.cache
def published(key: str) -> Mapping[str, float]:
    """Game -> raw score of one agent; games that it was not reported for are left out."""
    return MappingProxyType({row["game"]: float(row[key]) for row in rows("atari57.csv") if row[key]})


def find_game(environment: str) -> Game | None:
    """The game of an environment id: ``ALE/MsPacman-v5``, ``MsPacman`` or ``ms_pacman``."""
    wanted = _plain(re.sub(r"^ALE/|-v\d+$", "", environment))
    known = {_plain(game.ale_id.removeprefix("ALE/").removesuffix("-v5")): game for game in games().values()}
    return known.get(wanted)


def suggestion(environment: str) -> str:
    """``" Did you mean ...?"``, for an Atari id without references."""
    return nearest(environment, [game.ale_id for game in games().values()])


def rows(name: str) -> list[dict[str, str]]:
    """A table of this package."""
    text = files("lbc.scores").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
