"""Runs worth keeping, made small: ``python -m lbc.studies.archive keep results/short-pong/impala RUN ...``

    results/<task>/<label>/seed<k>/     config.toml, summary.json, and the curve from metrics.jsonl

    python -m lbc.studies.archive draw results/short-pong docs/short_pong.png --title "Short Pong"

draws the curves of all labels of a task, and prints the table.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lbc.errors import UserError
from lbc.reporting import RunDirectory, read_metrics
from lbc.studies.figures import compare, table

KEYS = (
    "frames",
    "seconds",
    "episodes",
    "score_mean",
    "score_max",
    "behavior_entropy",
    "kl_between_policies",
    "eval_score",
    "updates",
)
POLICY_KEYS = ("target_entropy", "kept_share", "policy_units_alive", "discount")
LINES = 200  # of a kept curve
_RESUMED = re.compile(r" --resume[ =](?:'[^']*'|\S+)")
_OUT = re.compile(r" --out[ =](?:'[^']*'|\S+)")
_SEED = re.compile(r"\bseed\W+(\d+)")
_BUDGET = ("frames", "minutes")  # what a later sitting may have changed
_COPIED = ("config.toml", "config.json", "machine.json", "summary.json", "eval.json")


def _kept(report: Mapping[str, Any]) -> dict[str, Any]:
    line = {key: _short(report[key]) for key in KEYS if key in report}
    policies = [
        {key: _short(policy[key]) for key in POLICY_KEYS if key in policy}
        for policy in report.get("policies", ())
    ]
    return line | {"policies": policies} if any(policies) else line


def _thinned(reports: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most `LINES`, evenly over the frames, because sittings of one run may report at different paces: the
    last of each piece."""
    if len(reports) <= LINES:
        return list(reports)
    counted = [report for report in reports if report.get("frames")]
    most = max((report["frames"] for report in counted), default=1)
    pieces = {(LINES - 1) * report["frames"] // most: report for report in counted}
    return list(pieces.values())


def keep(run: Path, label: Path) -> Path:
    """Copies what a figure and a table need of `run` to ``label/seed<k>``; returns that directory."""
    reports = read_metrics(RunDirectory(run).metrics)
    if not reports:
        raise UserError(f"'{run}' has no reports to keep.")
    found = next((_SEED.search(path.read_text()) for name in _COPIED if (path := run / name).exists()), None)
    if found is None:
        raise UserError(f"'{run}' has no configuration that names its seed.")
    target = label / f"seed{found[1]}"
    _refuse_to_replace_another(run, target)
    target.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        if (run / name).exists():
            shutil.copyfile(run / name, target / name)
    _forget_place(target / "machine.json")
    lines = [json.dumps(_kept(report)) for report in _thinned(reports)]
    (target / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return target


def _refuse_to_replace_another(run: Path, target: Path) -> None:
    """A run may be kept again, further on; but not in the place of one with other settings."""
    files = [RunDirectory(path).config for path in (run, target)]
    if not all(file.exists() for file in files):
        return
    new, old = (tomllib.loads(file.read_text(encoding="utf-8")) for file in files)
    for section, values in old.items():
        for key, was in values.items():
            if key not in _BUDGET and new.get(section, {}).get(key, was) != was:
                raise UserError(
                    f"'{target}' holds another run, whose {section}.{key} was {was} and not"
                    f" {new[section][key]}; choose another label."
                )


def _forget_place(machine: Path) -> None:
    """Commands stay as they were, but for the run's directory."""
    if machine.exists():
        found = json.loads(machine.read_text(encoding="utf-8"))
        for sitting in (found, *found.get("earlier", ())):
            if isinstance(sitting.get("command"), str):
                sitting["command"] = _RESUMED.sub(" --resume RUN", _OUT.sub("", sitting["command"]))
        machine.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _short(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value


def labels(task: Path, only: Sequence[str] = ()) -> dict[str, list[Path]]:
    """Label -> kept runs, in the order of the folders' names; of some folders alone, in the order given."""
    folders = [task / name for name in only] or sorted(path for path in task.iterdir() if path.is_dir())
    if missing := [path.name for path in folders if not path.is_dir()]:
        raise UserError(f"'{task}' has no folder {', '.join(missing)}.")
    found = {
        _name(folder): sorted(path.parent for path in folder.glob("seed*/metrics.jsonl"))
        for folder in folders
    }
    return {label: runs for label, runs in found.items() if runs}


def reached(runs: Mapping[str, Sequence[Path]], height: float) -> str:
    """A Markdown table: after how many million frames each seed's score first was at least `height`."""
    lines = [f"| variant | frames to {height:g}, each seed | seconds |", "|---|---|---|"]
    for label, paths in runs.items():
        firsts = []
        for path in paths:
            reports = read_metrics(RunDirectory(path).metrics)
            known = (report for report in reports if (report.get("score_mean") or -math.inf) >= height)
            firsts.append(next(known, None))
        frames = ", ".join(f"{first['frames'] / 1e6:.2f}M" if first else "not reached" for first in firsts)
        seconds = ", ".join(f"{first['seconds']:,.0f}" if first else "-" for first in firsts)
        lines.append(f"| {label} | {frames} | {seconds} |")
    return "\n".join(lines)


def _name(folder: Path) -> str:
    """What the figure calls it: the first line of a ``label.txt``, or the folder's name."""
    text = folder / "label.txt"
    return text.read_text().strip() if text.exists() else folder.name


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lbc.studies.archive", description="Runs worth keeping.")
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep", help="keep runs as seeds of one label")
    keeping.add_argument("label", type=Path)
    keeping.add_argument("runs", type=Path, nargs="+")
    drawing = commands.add_parser("draw", help="draw all labels of one task")
    drawing.add_argument("task", type=Path)
    drawing.add_argument("figure", type=Path)
    drawing.add_argument("--only", nargs="+", default=[], help="folders of the task, in this order")
    drawing.add_argument("--title", default="")
    drawing.add_argument("--ylabel", default="score per episode")
    drawing.add_argument("--reference", type=float, action="append", default=[])
    drawing.add_argument("--smooth", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        if options.command == "keep":
            for run in options.runs:
                print(keep(run, options.label))
        else:
            runs = labels(options.task, options.only)
            references = {f"{height:g}": height for height in options.reference}
            compare(runs, options.figure, options.title, options.ylabel, references, options.smooth)
            print(table(runs))
            for height in options.reference:
                print("\n" + reached(runs, height))
    except UserError as error:
        print(f"archive: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
