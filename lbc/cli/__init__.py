"""The command line: ``lbc train``, ``eval``, ``play``, ``scores``, ``report``, ``study``, ``suite`` ...

Exit codes: 0 done, 1 training failed, 2 bad input, 130 after Ctrl-C, 143 after SIGTERM,
141 when the output's reader has left.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from lbc import __version__
from lbc.cli.bench import Bench
from lbc.cli.dashboard import Dashboard
from lbc.cli.doctor import Doctor
from lbc.cli.evaluating import Eval, Play
from lbc.cli.export import Export
from lbc.cli.listing import List
from lbc.cli.parsing import parse
from lbc.cli.report import Report
from lbc.cli.scores import Scores
from lbc.cli.study import Study
from lbc.cli.suite import Suite
from lbc.cli.train import Train, with_its_card
from lbc.errors import TrainingError, UserError

__all__ = ["main"]

_COMMANDS = {
    "train": Train,
    "eval": Eval,
    "play": Play,
    "export": Export,
    "report": Report,
    "scores": Scores,
    "study": Study,
    "suite": Suite,
    "list": List,
    "bench": Bench,
    "doctor": Doctor,
    "dashboard": Dashboard,
}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"lbc {__version__}")
        return 0
    try:
        return parse(_COMMANDS, with_its_card(arguments)).run()
    except KeyboardInterrupt:  # before or after training; during it, Train knows better
        return 130
    except BrokenPipeError:  # the reader (`lbc list | head`) has left; Python's last flush must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UserError as error:
        return _failed(error, 2)
    except OSError as error:  # a path that is too long, closed, or no folder; training words its own
        return _failed(UserError(f"'{error.filename}' cannot be used ({error.strerror})."), 2)
    except TrainingError as error:
        return _failed(error, 1)


def _failed(error: Exception, code: int) -> int:
    """Bad input is shown as it is, but on one line, and a terminal obeys nothing of it."""
    text = f"lbc: {error}"
    print(_printable(text) if code == 2 else text, file=sys.stderr)
    return code


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
