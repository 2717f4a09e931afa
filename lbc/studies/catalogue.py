"""All studies by name."""

from __future__ import annotations

from collections.abc import Callable

from lbc.errors import UserError, nearest
from lbc.studies import ablation, atari, entropy, kl, ladder, minatar, readings, regions, runtimes, toy, tsne
from lbc.studies.plan import Study

STUDIES: dict[str, Callable[[], Study]] = {
    "ablation": ablation.study,
    "atari": atari.study,
    "entropy": entropy.study,
    "kl": kl.study,
    "ladder": ladder.study,
    "minatar": minatar.study,
    "readings": readings.study,
    "regions": regions.study,
    "runtimes": runtimes.study,
    "toy": toy.study,
    "tsne": tsne.study,
}


def find_study(name: str) -> Study:
    if name not in STUDIES:
        raise UserError(f"there is no study '{name}', but {', '.join(STUDIES)}.{nearest(name, STUDIES)}")
    return STUDIES[name]()
