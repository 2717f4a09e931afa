"""Words for games: a set of them (``atari57``), or one in any spelling (``ms_pacman``, ``MsPacman``)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from lbc.environments import atari, gymnasium_vector, list_ids, minatar
from lbc.errors import UserError, nearest
from lbc.scores import ATARI_3_VAL, ATARI_5, games
from lbc.studies.run import slug

# What Aitchison, Sweetser and Hutter (Atari-5, 2022) add to their five games.
_ATARI_10 = (*ATARI_5, "Amidar", "Bowling", "Frostbite", "Kung Fu Master", "Riverraid")


@functools.cache
def sets() -> Mapping[str, tuple[str, ...]]:
    """Word -> environment ids."""
    by_name = {
        "atari57": tuple(games()),
        "atari10": _ATARI_10,
        "atari5": tuple(ATARI_5),
        "atari3val": tuple(ATARI_3_VAL),
    }
    found = {word: tuple(sorted(games()[name].ale_id for name in names)) for word, names in by_name.items()}
    return found | {"minatar": tuple(minatar.IDS)}


def find_games(words: Sequence[str]) -> list[str]:
    """The environment ids that ``words`` mean, each once, in the order given."""
    found: dict[str, None] = {}
    for word in words:
        found |= dict.fromkeys(sets().get(_plain(word)) or [_one(word)])
    return list(found)


def folder_of(game: str) -> str:
    """``ms_pacman`` of ``ALE/MsPacman-v5``, ``minatar-breakout`` of ``MinAtar/Breakout``."""
    name = re.sub(r"^ALE/|-v\d+$", "", game)
    return atari.games().get(name) or slug(game)


def _one(word: str) -> str:
    if word in gymnasium_vector.registered_ids() or re.fullmatch(r"[\w.]+:\w+", word):
        return word
    known = {_plain(name): name for family in ("toy", "minatar") for name in list_ids()[family]}
    for name in atari.games():
        known |= dict.fromkeys((_plain(name), _plain(f"ALE/{name}-v5")), f"ALE/{name}-v5")
    if _plain(word) in known:
        return known[_plain(word)]
    names = [*sets(), *atari.games().values(), *(name for ids in list_ids().values() for name in ids)]
    raise UserError(
        f"'{word}' is no game and no set of games.{nearest(word.lower(), names)} The sets are"
        f" {', '.join(sets())}; `lbc list` shows all games."
    )


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
