"""Data flows one way: a folder imports only from those above it; actor and learner never meet."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "lbc"
ORDER = (
    "errors", "types", "interfaces", "config", "environments", "targets", "models", "behavior", "controller",
    "buffer", "parameters", "actor", "learner", "runtime", "cards", "reporting", "scores", "agents", "pages",
    "studies", "cli", "api",
)  # fmt: skip


def rooms(path: Path) -> set[str]:
    """Rooms of lbc that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("lbc.")}
    return found


def files() -> list[tuple[str, Path]]:
    parts = [(path, path.relative_to(ROOT).parts[0].removesuffix(".py")) for path in ROOT.rglob("*.py")]
    return [(room, path) for path, room in parts if room not in ("__init__", "__main__")]


def test_every_room_has_its_place() -> None:
    assert {room for room, _ in files()} <= set(ORDER)


def test_imports_point_upward_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports lbc.{other}"
        for room, path in files()
        for other in rooms(path)
        if ORDER.index(other) > ORDER.index(room)
    ]
    assert not wrong


def test_actor_and_learner_are_siblings() -> None:
    assert not any("learner" in rooms(path) for room, path in files() if room == "actor")
    assert not any("actor" in rooms(path) for room, path in files() if room == "learner")


def test_the_readme_lists_the_rooms_in_order() -> None:
    text = (ROOT.parent / "README.md").read_text().split("## The folders")[1]
    places = [text.index(f"`lbc/{room}/`") for room in ORDER if (ROOT / room).is_dir()]
    assert places == sorted(places)
