"""``module:name`` in a configuration: a part of the user's own, imported when it is needed."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lbc.errors import UserError

if TYPE_CHECKING:
    from lbc.config import Config


def is_own(name: str) -> bool:
    return ":" in name


def own_parts(config: Config) -> dict[str, str]:
    """Key -> name of every part that running this configuration would import."""
    parts = {"environment.id": config.environment.id, "model.torso": config.model.torso}
    parts |= {f"population.shapings[{i}]": name for i, name in enumerate(config.population.shapings)}
    return {key: name for key, name in parts.items() if is_own(name)}


def imported(name: str, what: str) -> Callable[..., Any]:
    """What ``module:name`` names; a module may also lie in the current folder."""
    module_name, _, own_name = name.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), own_name]):
        raise UserError(f"{what} must be written module:factory, as in my_package:build")
    if "" not in sys.path and os.getcwd() not in sys.path:  # a console script does not look there by itself
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever a module does when it is imported
        raise UserError(f"module of {what} cannot be imported: {error}") from error
    found = getattr(module, own_name, None)
    if found is None:
        raise UserError(f"module {module_name} has no '{own_name}' ({what})")
    if not callable(found):
        raise UserError(f"{what} must name a function or class, not {found!r}")
    own: Callable[..., Any] = found
    return own
