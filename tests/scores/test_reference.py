from __future__ import annotations

import pytest

from lbc.environments.atari import ids
from lbc.scores import AGENTS, find_game, games, published


def test_57_games_that_the_emulator_has() -> None:
    assert len(games()) == 57
    assert {game.ale_id for game in games().values()} <= set(ids())
    assert list(games()) == sorted(games())


def test_every_reference_can_be_divided_by() -> None:
    assert all(game.random < game.human and game.random < game.record for game in games().values())


def test_who_was_reported_on_how_many_games() -> None:
    counts = {agent.name: len(published(agent.key)) for agent in AGENTS}
    assert counts == {
        "Agent57": 57, "LBC": 57, "MEME": 57, "MuZero": 57, "EfficientZero": 26, "Go-Explore": 55,
        "GDI-H3": 57,
    }  # fmt: skip


@pytest.mark.parametrize("spelling", ["ALE/MsPacman-v5", "MsPacman-v5", "MsPacman", "ms_pacman", "Ms Pacman"])
def test_a_game_by_any_of_its_names(spelling: str) -> None:
    found = find_game(spelling)
    assert found is not None and found.name == "Ms Pacman"


@pytest.mark.parametrize("name", ["catch", "MinAtar/Breakout", "ALE/Adventure-v5", "CartPole-v1", "", "ALE/"])
def test_games_without_references(name: str) -> None:
    assert find_game(name) is None
