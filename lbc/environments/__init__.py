"""Games, ready to be acted in: each one is a ``VectorEnvironment``, whatever its family."""

from __future__ import annotations

from dataclasses import replace

from lbc.config import EnvironmentConfig
from lbc.environments import atari, gymnasium_vector, minatar, toy
from lbc.environments.apart import Apart
from lbc.environments.cores import usable_cores
from lbc.environments.staggered import Staggered
from lbc.errors import UserError, nearest
from lbc.interfaces import Game, VectorEnvironment

MOST_APART = 512  # copies: each of them has a thread

__all__ = ["Apart", "list_ids", "make", "make_apart"]


def make(config: EnvironmentConfig, num_envs: int, stagger_steps: int = 0) -> VectorEnvironment:
    """``num_envs`` copies of the game that ``config.id`` names.

    With ``stagger_steps`` they do not stay together, though they begin together (`Staggered`).
    """
    if num_envs < 1:
        raise UserError(f"num_envs must be at least 1 (there is nothing to step otherwise), it is {num_envs}")
    game = _game(config, num_envs)
    return Staggered(game, stagger_steps) if stagger_steps else game


def make_apart(config: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
    """The same copies for an evaluation: an `Apart` where it pays not to step all of them."""
    if not (_is_atari(config.id) and 1 <= num_envs <= MOST_APART):
        return make(config, num_envs)
    one = replace(config, threads=1)
    return Apart(lambda: atari.Atari(one, 1), num_envs, at_once=config.threads or usable_cores())


def _is_atari(name: str) -> bool:
    return name.startswith(atari.PREFIX) or name in atari.games()


def _game(config: EnvironmentConfig, num_envs: int) -> Game:
    name = config.id
    if name == "catch":
        return toy.Catch(config, num_envs)
    if name == "deepsea":
        return toy.DeepSea(config, num_envs)
    if name.startswith(minatar.PREFIX):
        return minatar.MinAtar(config, num_envs)
    if name.startswith(atari.PREFIX):
        return atari.Atari(config, num_envs)
    if ":" in name or name in gymnasium_vector.registered_ids():
        return gymnasium_vector.GymnasiumVector(config, num_envs)
    if name in atari.games():
        return atari.Atari(config, num_envs)
    known = [*(known for family in list_ids().values() for known in family), *atari.games()]
    raise UserError(f"unknown environment '{name}'.{nearest(name, known)}")


def list_ids() -> dict[str, list[str]]:
    """Known ids by family."""
    return {
        "toy": list(toy.IDS),
        "minatar": list(minatar.IDS),
        "atari": atari.ids(),
        "gymnasium": gymnasium_vector.ids(),
    }
