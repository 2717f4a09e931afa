"""``lbc report``; what it needs is imported when it runs, so that help answers at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lbc.cli.parsing import POSITIONAL
from lbc.errors import UserError


@dataclass(frozen=True)
class Report:
    """One HTML file about runs: curves, scores, diagnostics with advice, behavior, speed, configuration.

    Args:
        runs: Run directories, or folders of them; runs that differ only in their seed are one group.
        out: File to write; by default report.html, in the directory if one was given, else here.
        no_video: Leave out the film of who is steering.
    """

    runs: Annotated[tuple[str, ...], POSITIONAL] = ()
    out: str | None = None
    no_video: bool = False

    def run(self) -> int:
        if not self.runs:
            raise UserError("give at least one run directory, as in: lbc report runs/catch")
        for path in (*self.runs, self.out or ""):
            if "\0" in path:
                raise UserError(f"'{path}' is no path.")
        from lbc.pages.report import write_report

        paths = [Path(path) for path in self.runs]
        out = Path(self.out) if self.out else (paths[0] if len(paths) == 1 else Path()) / "report.html"
        written = write_report(paths, out, not self.no_video)
        for sentence in written.left_out:
            print(f"lbc: left out: {sentence}", file=sys.stderr)
        games = ", ".join(written.games[:3]) + (" and more" if len(written.games) > 3 else "")
        print(f"{out}: {written.runs} run{'s' * (written.runs > 1)} of {games}, {written.size / 1e6:.1f} MB")
        return 0
