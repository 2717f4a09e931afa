"""Plain TOML values into typed config fields, and one sentence where they do not fit."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

from lbc.config import Config
from lbc.errors import UserError, nearest

Tables = dict[str, dict[str, Any]]  # section -> key -> value, already of the field's type


@functools.cache
def section_fields() -> Mapping[str, Mapping[str, Any]]:
    """The type of every field, by section and key: whatever ``Config`` holds, a card can set."""
    sections = typing.get_type_hints(Config)
    return {
        field.name: {
            inner.name: typing.get_type_hints(sections[field.name])[inner.name]
            for inner in dataclasses.fields(sections[field.name])
        }
        for field in dataclasses.fields(Config)
    }


def checked(section: str, key: str, value: Any) -> Any:
    """``value`` as the type of ``section.key``."""
    sections = section_fields()
    if section not in sections:
        raise UserError(f"There is no config section '{section}'.{nearest(section, sections)}")
    if key not in sections[section]:
        raise UserError(f"There is no config key '{section}.{key}'.{_nearest_key(section, key)}")
    wanted = sections[section][key]
    try:
        return _convert(value, wanted)
    except TypeError:
        raise UserError(f"{section}.{key} is {_shown(value)}, but must be {_described(wanted)}.") from None
    except OverflowError:
        raise UserError(f"{section}.{key} has more digits than a number here can have.") from None


def build(tables: Mapping[str, Mapping[str, Any]]) -> Config:
    """A ``Config`` from its sections; every record checks its own values while it is built."""
    hints = typing.get_type_hints(Config)
    return Config(**{section: hints[section](**values) for section, values in tables.items()})


def checked_tables(document: Mapping[str, Any]) -> Tables:
    """The sections of a parsed TOML document, each value checked."""
    tables: Tables = {}
    for section, values in document.items():
        if not isinstance(values, Mapping):
            hint = nearest(section, section_fields()) or " Put it into a [section]."
            raise UserError(f"'{section}' stands outside of any config section.{hint}")
        if section not in section_fields():
            checked(section, "", None)
        tables[section] = {key: checked(section, key, value) for key, value in values.items()}
    return tables


def _convert(value: Any, wanted: Any) -> Any:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, arguments)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_convert(item, arguments[0]) for item in value)
        if len(arguments) != len(value):
            raise TypeError
        return tuple(_convert(item, kind) for item, kind in zip(value, arguments, strict=True))
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is int and type(value) is float and value.is_integer():
        value = int(value)  # so that 2e6 frames can be written
    if type(value) is not wanted:  # exact: a bool is not an int here
        raise TypeError
    if wanted is int and abs(value) >= 2**63:
        raise OverflowError
    return value


def _convert_union(value: Any, members: tuple[Any, ...]) -> Any:
    for member in members:
        try:
            return _convert(value, member)
        except TypeError:
            continue
    raise TypeError


def _nearest_key(section: str, key: str) -> str:
    """The closest key of that section, or the section that does have this very key."""
    sections = section_fields()
    hint = nearest(key, sections[section])
    elsewhere = [other for other in sections if key in sections[other]]
    return f" Did you mean '{elsewhere[0]}.{key}'?" if elsewhere else hint


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
_PLURALS = {int: "whole numbers", float: "numbers", bool: "true or false", str: "strings"}


def _described(wanted: Any) -> str:
    if typing.get_origin(wanted) is tuple:
        return f"a list of {_PLURALS.get(typing.get_args(wanted)[0], 'values')}, in brackets"
    members = [member for member in typing.get_args(wanted) if member is not type(None)]
    if members:
        return " or ".join(_described(member) for member in members)
    return _WORDS.get(wanted, f"a {getattr(wanted, '__name__', wanted)}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)
