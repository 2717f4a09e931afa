"""The configuration as TOML text and back, without loss: ``from_toml(to_toml(c)) == c``."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

from lbc.cards.values import build, checked_tables
from lbc.config import Config
from lbc.errors import UserError


def to_toml(config: Config) -> str:
    """Every value of every section, so that a later change of a default changes no old run."""
    sections = []
    for field in dataclasses.fields(config):
        record = getattr(config, field.name)
        lines = [
            f"{inner.name} = {_written(getattr(record, inner.name))}"
            for inner in dataclasses.fields(record)
            if getattr(record, inner.name) is not None  # TOML has no null: absent means none
        ]
        sections.append("\n".join([f"[{field.name}]", *lines]))
    return "\n\n".join(sections) + "\n"


def from_toml(text: str) -> Config:
    """The configuration that ``text`` describes; what it leaves out keeps its default."""
    return build(checked_tables(parsed(text, "the configuration")))


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"'{path}' is not a text file.") from None


def parsed(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also digits or brackets by the thousand
        raise UserError(f"{source} is not valid TOML: {error}.") from None


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's, but TOML also wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(_written(item) for item in value)}]"
    return repr(value)  # the shortest text that reads back as the same float
