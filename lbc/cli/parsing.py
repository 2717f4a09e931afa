"""From arguments to a typed command.

A command is a dataclass: a field without a default is positional, the others are ``--options``, a
tuple may be given several times, and the ``Args:`` of its docstring are the help texts.  A tuple that is
annotated ``POSITIONAL`` takes any number of words without an option before them.  tyro reads
exactly that; where tyro is missing, a small argparse parser reads the same.  argparse also
words the errors, because bad input deserves one sentence and tyro draws a box.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import io
import operator
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn, Protocol

from lbc.errors import UserError, nearest

_DESCRIPTION = "Learnable Behavior Control; `lbc --version` shows the version."


def _positional() -> Any:
    """tyro's own mark where tyro is installed; argparse's side only looks for the same object."""
    if not importlib.util.find_spec("tyro"):
        return "positional"
    import tyro.conf

    mark: Any = tyro.conf.Positional
    return typing.get_args(mark[Any])[1]


POSITIONAL = _positional()


class Command(Protocol):
    def run(self) -> int: ...


def parse(commands: Mapping[str, type[Any]], arguments: Sequence[str]) -> Command:
    arguments = _repeated_set(arguments, commands)
    if importlib.util.find_spec("tyro"):
        try:
            return _by_tyro(commands, arguments)
        except SystemExit as end:
            if not end.code:  # help was wanted and shown
                raise
    return _by_argparse(commands, arguments)


# Options after which several values may follow, and what such a value looks like; where they take several.
_LISTS = {
    "--set": r"\w+\.\w+=",
    "--seeds": r"\d",
    **dict.fromkeys(("--env", "--runs", "--only", "--task", "--games", "--cards"), r"(?!--)"),
    "--ways": r"(fav|train|comp)\w*$",  # not the directory of a run
}


def _repeated_set(arguments: Sequence[str], commands: Mapping[str, type[Any]]) -> list[str]:
    """``--set a.b=1 c.d=2`` as ``--set a.b=1 --set c.d=2``: both spellings are natural."""
    command = commands.get(arguments[0]) if arguments else None
    hints = typing.get_type_hints(command) if command else {}
    lists = {f"--{name}" for name, hint in hints.items() if _value_type(hint)[1]}
    repeated: list[str] = []
    for argument in arguments:
        option = repeated[-2] if len(repeated) >= 2 else ""
        if option in lists & set(_LISTS) and re.match(_LISTS[option], argument):
            repeated.append(option)
        repeated.append(argument)
    return repeated


def _by_tyro(commands: Mapping[str, type[Any]], arguments: list[str]) -> Command:
    import tyro

    members = tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in commands.items())
    read: Any = tyro.cli  # a union made at run time is beyond its annotations
    with contextlib.redirect_stderr(io.StringIO()):  # argparse words the error
        command: Command = read(
            functools.reduce(operator.or_, members),
            prog="lbc",
            description=_DESCRIPTION,
            args=arguments,
            config=(tyro.conf.PositionalRequiredArgs, tyro.conf.UseAppendAction, tyro.conf.OmitArgPrefixes),
        )
    return command


def _by_argparse(commands: Mapping[str, type[Any]], arguments: list[str]) -> Command:
    parser = _OneSentenceParser(prog="lbc", description=_DESCRIPTION, allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in commands.items():
        summary = (command.__doc__ or "").partition("\n")[0]
        subparser = subparsers.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        _add_fields(subparser, command)
    values = vars(parser.parse_args(arguments))
    command = commands[values.pop("command")]
    return command(**values)


def _add_fields(parser: argparse.ArgumentParser, command: type[Any]) -> None:
    hints = typing.get_type_hints(command)
    annotated = typing.get_type_hints(command, include_extras=True)
    helps = dict(re.findall(r"^\s+(\w+): (.+)$", command.__doc__ or "", flags=re.MULTILINE))
    for field in dataclasses.fields(command):
        kind, several = _value_type(hints[field.name])
        option = f"--{field.name.replace('_', '-')}"
        if kind is bool:
            parser.add_argument(option, action="store_true", help=helps[field.name])
        elif field.default is dataclasses.MISSING:
            parser.add_argument(field.name, type=kind, help=helps[field.name])
        elif POSITIONAL in getattr(annotated[field.name], "__metadata__", ()):
            parser.add_argument(
                field.name, type=kind, nargs="*", default=(), action=_Several, help=helps[field.name]
            )
        else:
            parser.add_argument(
                option,
                type=kind,
                default=field.default,
                help=helps[field.name],
                action=_Append if several else "store",
            )


def _value_type(hint: Any) -> tuple[type, bool]:
    """The type of one value, and whether there may be several."""
    members = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return members[0], True
    if isinstance(hint, types.UnionType):
        return next(member for member in members if member is not type(None)), False
    return hint, False


class _Append(argparse.Action):
    """Collect into a tuple, which a frozen dataclass can hold."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), values))


class _Several(argparse.Action):
    """All words at once, as a tuple."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, tuple(values))


class _OneSentenceParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        hint = ""
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown:
            options = [option for parser in self._subparsers_of() for option in parser._option_string_actions]
            hint = nearest(unknown[1], options)
        raise UserError(f"{message}.{hint} See '{self.prog} --help'.")

    def _subparsers_of(self) -> list[argparse.ArgumentParser]:
        groups = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return [self, *(parser for group in groups for parser in group.choices.values())]
