"""From a preset's name and a user's wishes to one configuration."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from lbc.cards.shelf import Card, find, laid_over
from lbc.cards.values import Tables, build, checked, checked_tables
from lbc.config import Config
from lbc.errors import UserError

_OPTIONS = {  # option of the command line -> where it lives in the configuration
    "env": ("environment", "id"),
    "frames": ("run", "frames"),
    "minutes": ("run", "minutes"),
    "seed": ("run", "seed"),
    "runtime": ("run", "runtime"),
    "init": ("run", "init"),
}


def resolve(
    preset: str | Config,
    overrides: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    *,
    env: str | None = None,
    frames: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    runtime: str | None = None,
    init: str | None = None,
) -> Config:
    """Defaults, then the cards in ``preset`` from left to right, then ``overrides`` and options.

    ``preset`` is ``name`` or ``name+overlay+...``; an override is ``section.key=value`` with a value
    as in TOML (quotes around a string may be left out).  Among overrides the later wins, but an
    option and an override for the same value contradict each other.  Python may also hand in a whole
    configuration, and overrides by section.
    """
    if frames is not None and minutes is not None:
        raise UserError("--frames and --minutes contradict each other; give the budget in one of them.")
    if minutes is not None and not minutes > 0:
        raise UserError(f"--minutes is {minutes:g}, but must be positive.")
    tables: Tables = {}
    if isinstance(preset, Config):
        tables = dataclasses.asdict(preset)
    else:
        for card in _stacked(preset):
            tables = laid_over(tables, card.tables)
    wishes = checked_tables(overrides) if isinstance(overrides, Mapping) else _parsed(overrides)
    options = {
        "env": env,
        "frames": frames,
        "minutes": minutes,
        "seed": seed,
        "runtime": runtime,
        "init": init,
    }
    for option, value in options.items():
        if value is None:
            continue
        section, key = _OPTIONS[option]
        if key in wishes.get(section, {}):
            raise UserError(f"--{option} and --set {section}.{key} contradict each other; give one of them.")
        wishes.setdefault(section, {})[key] = checked(section, key, value)
    return build(laid_over(tables, _one_budget(wishes)))


def _stacked(preset: str) -> list[Card]:
    base, *overlays = (find(name.strip()) for name in preset.split("+"))
    if base.kind == "overlay":
        raise UserError(f"'{base.name}' is an overlay; lay it over a preset, as in minatar+{base.name}.")
    for card in overlays:
        if card.kind != "overlay":
            raise UserError(
                f"'{base.name}' and '{card.name}' are both presets; only overlays can follow '+'."
            )
    return [base, *overlays]


def _parsed(overrides: Sequence[str]) -> Tables:
    wishes: Tables = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot and section and key):
            raise UserError(f"--set takes section.key=value, but got '{override}'.")
        wishes.setdefault(section, {})[key] = checked(section, key, _toml_value(text.strip()))
    return wishes


def _toml_value(text: str) -> Any:
    """``text`` as a TOML value, or itself where it is none: a shell eats quotes."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # no TOML, or a number or list beyond all reason
        return text
    return document["value"] if len(document) == 1 else text


def _one_budget(wishes: Tables) -> Tables:
    """A budget in frames replaces a card's budget in minutes; both at once contradict."""
    run = wishes.get("run", {})
    if "frames" in run and run.get("minutes"):
        raise UserError("run.frames and run.minutes contradict each other; give the budget in one of them.")
    if "frames" in run:
        run["minutes"] = 0.0
    return wishes
