"""How well does LBC-BM play MinAtar?  Ours alone; `benchmarks/minatar_vs_ppo.py` adds the yardstick."""

from __future__ import annotations

from lbc.studies.plan import Study, Variant

GAMES = ("Breakout", "Asterix")


def study() -> Study:
    return Study(
        "minatar",
        "How well does LBC-BM play MinAtar?",
        tuple(
            Variant("LBC-BM", "minatar", (f"environment.id=MinAtar/{game}",), f"MinAtar {game}")
            for game in GAMES
        ),
    )
