"""``lbc dashboard``; what it needs is imported when it runs, so that ``lbc --help`` answers at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lbc.cli.parsing import POSITIONAL
from lbc.errors import UserError


@dataclass(frozen=True)
class Dashboard:
    """Watch runs in a browser, live, on this machine.

    Args:
        runs: Run directories, or folders that are searched for them; by default runs.
        port: Where to listen; 0 for any free one.
        host: Address to listen on; others than this machine can read along if it is not a loopback address.
        open: Open the page in the browser.
    """

    runs: Annotated[tuple[str, ...], POSITIONAL] = ()
    port: int = 8265
    host: str = "127.0.0.1"
    open: bool = False

    def run(self) -> int:
        from lbc.pages.guard import is_loopback
        from lbc.pages.server import serve

        for path in self.runs:
            if "\0" in path:
                raise UserError(f"'{path}' is no path.")
        roots = [Path(path) for path in self.runs or ("runs",)]
        if not self.runs and not roots[0].is_dir():
            raise UserError(
                "there is no folder 'runs' here; name the folder of your runs, or train one first."
            )
        if not is_loopback(self.host):
            print(
                f"lbc: whoever can reach {self.host} can read these runs: there is no password.",
                file=sys.stderr,
            )
        serve(roots, self.host, self.port, self._ready)
        return 0

    def _ready(self, address: str) -> None:
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        if self.open:
            import webbrowser

            webbrowser.open(address)
