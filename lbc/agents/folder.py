"""An agent as a folder of its own, a few megabytes, and those that come with the package.

::

    DIR/config.toml                          as the run had it
    DIR/summary.json                         frames of training, and the favoured behavior
    DIR/checkpoints/weights.safetensors      of all policies

`load_agent`, ``lbc play`` and ``lbc eval`` take such a folder, or the name of one in ``lbc/agents/trained``,
wherever they take a run directory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from lbc.cards import to_toml
from lbc.errors import UserError, nearest
from lbc.parameters.checkpoint import save_weights
from lbc.reporting import RunDirectory

if TYPE_CHECKING:
    from lbc.agents.agent import Agent

_TRAINED = Path(__file__).parent / "trained"


def trained_agents() -> list[str]:
    """Names of the agents that come with the package."""
    return sorted(path.parent.name for path in _TRAINED.glob("*/config.toml"))


def directory_of(name: str | Path) -> Path:
    """The directory of a run, or of an agent that comes with the package; what is there goes first."""
    path = Path(name)
    if not path.exists() and str(name) in trained_agents():
        return _TRAINED / name
    if not RunDirectory(path).config.exists():
        known = trained_agents()
        names = f"; agents that come with lbc: {', '.join(known)}" if known and not path.exists() else ""
        raise UserError(f"'{name}' holds no run{names}.{nearest(str(name), known)}")
    return path


def place_for(name: str | Path, file: str) -> Path:
    """Where something about an agent goes by default: in its run's directory; ``pong.gif`` in this folder for
    ``play.gif`` of an agent that comes with the package."""
    directory = directory_of(name)
    return Path(f"{name}{Path(file).suffix}") if directory.parent == _TRAINED else directory / file


def write_folder(agent: Agent, path: Path) -> Path:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"'{path}' exists already; name a folder that does not.")
    directory = RunDirectory(path)
    directory.checkpoints.mkdir(parents=True)
    directory.config.write_text(to_toml(agent.config), encoding="utf-8")
    count = len(agent.favourite) // 2
    summary = {
        "environment": agent.spec.id,
        "frames": agent.frames,
        "favourite_tau": agent.favourite[:count].tolist(),
        "favourite_omega": agent.favourite[count:].tolist(),
    }
    directory.summary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    weights = [network.state_dict() for network in agent.networks]
    save_weights(directory.checkpoints / "weights.safetensors", weights, {"frames": str(agent.frames)})
    return path
