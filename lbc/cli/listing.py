"""``lbc list``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lbc.cards import Card


@dataclass(frozen=True)
class List:
    """Show presets, algorithms, trained agents and games."""

    def run(self) -> int:
        from lbc.agents.folder import trained_agents
        from lbc.cards import available
        from lbc.environments import list_ids

        cards = available()
        _print_cards("Presets", [card for card in cards if card.kind == "preset"])
        _print_cards(
            "Algorithms and ablations, laid over any preset with '+' (without one: LBC-BM)",
            [card for card in cards if card.kind == "overlay"],
        )
        print("Trained agents, for `lbc play` and `lbc eval`")
        _print_wrapped("  ", ", ".join(trained_agents()))
        print()
        print("Games, for --env (or your own: any Gymnasium id, or module:factory)")
        for family, ids in list_ids().items():
            _print_wrapped(f"  {family:<11}", ", ".join(ids))
        return 0


def _print_cards(title: str, cards: Sequence[Card]) -> None:
    print(title)
    width = max(len(card.name) for card in cards)
    for card in cards:
        _print_wrapped(f"  {card.name:<{width}}  ", card.description)
    print()


def _print_wrapped(label: str, text: str) -> None:
    columns = shutil.get_terminal_size().columns
    wrapped = textwrap.wrap(text, max(20, columns - len(label)), break_on_hyphens=False) or ["-"]
    print(label + f"\n{' ' * len(label)}".join(wrapped))
