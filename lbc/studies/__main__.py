"""``python -m lbc.studies NAME``: do what is missing, then draw and print."""

from __future__ import annotations

import argparse
import glob
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lbc.cli.train import parse_frames
from lbc.errors import UserError
from lbc.studies import ablation, ladder, minatar, readings, runtimes, toy
from lbc.studies.figures import compare_panels, table
from lbc.studies.runner import Run, Study, execute, missing, plan

STUDIES: dict[str, Callable[[], Study]] = {
    "ablation": ablation.study,
    "ladder": ladder.study,
    "minatar": minatar.study,
    "readings": readings.study,
    "runtimes": runtimes.study,
    "toy": toy.study,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        study = STUDIES[options.name]()
        study = study.only(options.only, options.task)
        if options.set:
            study = replace(
                study,
                variants=tuple(replace(v, sets=(*v.sets, *options.set)) for v in study.variants),
            )
        first = options.first_seed
        seeds = range(first, first + (options.seeds or study.seeds))
        frames = None if options.frames is None else parse_frames(options.frames)
        runs = plan(study, seeds, options.out, frames)
        return run_and_show(
            study, runs, options.figure, options.jobs, options.stale, options.smooth, options.also
        )
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        print(f"lbc.studies: {error}", file=sys.stderr)
        return 2


def run_and_show(
    study: Study,
    runs: Sequence[Run],
    figure: Path | None = None,
    jobs: int | None = None,
    stale: str = "refuse",
    smooth: int = 5,
    also: Sequence[str] = (),
) -> int:
    """Does the missing ones of ``runs``, writes figure and table beside them, prints the table."""
    extra = [_extra(text) for text in also]
    todo = missing(runs, stale)
    print(f"{study.name}: {study.question}  {len(runs)} runs, {len(runs) - len(todo)} done already.")
    failures = execute(todo, jobs) if todo else []
    panels: dict[str, dict[str, list[Path]]] = {}
    for run in runs:
        panel = panels.setdefault(run.variant.task, {})
        panel.setdefault(run.variant.label, []).append(run.path)
    for label, paths in extra:
        for panel in panels.values():
            panel[label] = paths
    folder = runs[0].path.parents[1]
    figure = figure or folder / f"{study.name}.png"
    text = "\n\n".join(
        f"### {task}\n\n{table(panel)}" if task else table(panel) for task, panel in panels.items()
    )
    (folder / f"{study.name}.md").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}\n")
    titled = {task or study.question: panel for task, panel in panels.items()}
    if compare_panels(titled, figure, references=dict(study.references), smooth=smooth):
        print(f"figure {figure}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def _extra(text: str) -> tuple[str, list[Path]]:
    label, equals, pattern = text.partition("=")
    if not (equals and label and pattern):
        raise UserError(f"--also takes LABEL=DIRECTORIES, but got '{text}'.")
    folders = [Path(folder) for folder in sorted(glob.glob(pattern))]
    paths = [folder for folder in folders if (folder / "metrics.jsonl").exists()]
    if not paths:
        raise UserError(f"--also '{pattern}' matches no run directory.")
    return label, paths


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lbc.studies",
        description="Run what a study is missing, then write its figure and its table.",
        epilog="studies: " + "; ".join(f"{name} ({make().question})" for name, make in STUDIES.items()),
    )
    parser.add_argument("name", choices=sorted(STUDIES))
    parser.add_argument("--seeds", type=_positive, help="how many; by default the study's own number")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--frames", help="budget of every run instead of its card's, as in 2M")
    parser.add_argument("--jobs", type=_positive, help="runs at a time; by default one per usable core")
    parser.add_argument("--out", type=Path, default=Path("runs/studies"))
    parser.add_argument("--only", nargs="+", default=[], metavar="LABEL", help="these variants alone")
    parser.add_argument("--task", nargs="+", default=[], metavar="TASK", help="these tasks alone")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every variant")
    parser.add_argument(
        "--also", action="append", default=[], metavar="LABEL=DIRS",
        help="existing runs in the same figure; DIRS may hold wildcards",
    )  # fmt: skip
    parser.add_argument(
        "--stale", choices=["refuse", "keep", "rerun"], default="refuse",
        help="what to do with a finished run whose card has changed since",
    )  # fmt: skip
    parser.add_argument("--figure", type=Path, help="where the figure goes; by default beside the runs")
    parser.add_argument("--smooth", type=_positive, default=5, help="reports in a running mean, 1: none")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


if __name__ == "__main__":
    sys.exit(main())
