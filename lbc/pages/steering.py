"""Who is steering, for a page: a film of the newest checkpoint, inside the page."""

from __future__ import annotations

import base64
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lbc.errors import UserError
from lbc.pages.filming import own_code
from lbc.pages.reading import Run
from lbc.reporting import RunDirectory

STEPS = 200  # of a film: some 13 seconds, and some tens of kilobytes


@dataclass(frozen=True)
class Film:
    """A GIF as a data URI, or why there is none."""

    uri: str
    says: str


def best_film(runs: Sequence[Run]) -> Film:
    """Of the run with the best final score among those with weights."""
    there = [run for run in runs if any(RunDirectory(run.path).checkpoints.glob("*"))]
    if not there:
        return Film("", "No film: no run of this game has a checkpoint here.")
    allowed = [run for run in there if not own_code(dict(run.config))]
    if not allowed:
        return Film("", "No film: these runs use code of your own; `lbc play DIR` films them.")
    return _film(max(allowed, key=lambda run: run.final))


def _film(run: Run) -> Film:
    from lbc.agents import load_agent
    from lbc.agents.film import Sheet, play, save

    try:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")  # an older checkpoint than the newest is good enough
            agent = load_agent(run.path, "cpu")
            path, sheet = Path(folder) / "film.gif", Sheet(agent)
            count = save(map(sheet.draw, play(agent, steps=STEPS)), path)
            uri = "data:image/gif;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
    except UserError as error:
        return Film("", f"No film: {error}")
    except Exception as error:  # whatever a game or its package does: the rest of the page is worth having
        return Film("", f"No film: {type(error).__name__} while '{run.path}' was played.")
    return Film(uri, f"{count} steps of '{run.path}', after {agent.frames:,} frames of training.")
