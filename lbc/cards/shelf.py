"""The cards that exist: those of this package by name, anyone's own by path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbc.cards.toml import parsed, text_of
from lbc.cards.values import Tables, checked_tables
from lbc.errors import UserError, nearest

_FOLDER = Path(__file__).parent
_KINDS = ("preset", "overlay")  # those that a user names
_BASE = "base"  # what presets share, named by their key `base`


@dataclass(frozen=True)
class Card:
    """One card, checked: ``tables`` holds only the values that it changes, its base's included."""

    name: str
    kind: str  # preset: stands alone | overlay: one change, laid over a preset
    description: str  # the file's first comment line
    tables: Tables


def available() -> list[Card]:
    """Every card of the package, presets first."""
    cards = [card for path in sorted(_FOLDER.glob("*.toml")) if (card := _read(path)).kind != _BASE]
    return sorted(cards, key=lambda card: (_KINDS.index(card.kind), card.name))


def find(name: str) -> Card:
    """The card of that name; a name that ends in ``.toml`` is a file, such as a run's config.toml."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UserError(f"There is no card file '{name}'.")
        return _read(path)
    cards = {card.name: card for card in available()}
    if name not in cards:
        presets, overlays = (
            ", ".join(card.name for card in cards.values() if card.kind == kind) for kind in _KINDS
        )
        raise UserError(
            f"There is no preset or overlay '{name}'.{nearest(name, cards)}"
            f" The presets are {presets}; the overlays are {overlays}."
        )
    return cards[name]


def _read(path: Path) -> Card:
    text = text_of(path)
    document: dict[str, Any] = parsed(text, f"The card '{path}'")
    kind = document.pop("kind", "preset")
    base = document.pop("base", None)
    if kind not in (*_KINDS, _BASE):
        raise UserError(f"The card '{path}' is of kind '{kind}', but must be one of {', '.join(_KINDS)}.")
    first = text.partition("\n")[0]
    description = first.lstrip("# ").strip() if first.startswith("#") else ""
    tables = checked_tables(document)
    if base is not None:
        tables = laid_over(_base(base, path).tables, tables)
    return Card(path.stem, kind, description, tables)


def _base(name: Any, path: Path) -> Card:
    base = _FOLDER / f"{name}.toml"
    if base.parent != _FOLDER or not base.is_file():
        raise UserError(f"The card '{path}' is based on '{name}', which does not exist.")
    return _read(base)


def laid_over(below: Tables, over: Tables) -> Tables:
    """Both cards' values; where both set one, `over` wins."""
    sections = [*below, *(section for section in over if section not in below)]
    return {section: below.get(section, {}) | over.get(section, {}) for section in sections}
