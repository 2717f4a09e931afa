"""What do the bandits come to prefer?  The share of each region of tau and omega, as training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lbc.studies.courses import LATE, Course, courses, region_name
from lbc.studies.heat_maps import draw
from lbc.studies.plan import Study, Variant
from lbc.studies.presentation import Canvas, Panels, Shown


def study() -> Study:
    return Study(
        "regions",
        "What do the bandits come to prefer?",
        (Variant("LBC-BM", "minatar", task="MinAtar Breakout"),),
        frames=200_000,
        present=preferences,
    )


def preferences(panels: Panels, canvas: Canvas) -> Shown:
    """One figure per variant; its seeds are averaged."""
    figures, rows, findings, lines = [], [], [], []
    variants = [(task, label, paths) for task, runs in panels.items() for label, paths in runs.items()]
    for number, (task, label, paths) in enumerate(variants):
        seeds = courses(paths)
        png = canvas.png if number == 0 else canvas.beside(str(number + 1))
        title = f"{task}: {label}" if task else label
        draw(seeds, png, title)
        figures.append(png)
        rows += _rows(task, label, paths, seeds)
        lines += _lines(title, seeds)
        findings.append(_finding(title, seeds))
    head = (
        f"| variant | dimension | regions | favourite of the last {LATE:.0%}, each seed | signal to noise |"
    )
    return Shown("\n".join([head, "|---|---|---|---|---|", *lines]), "\n\n".join(findings), rows, figures)


def _finding(title: str, seeds: Sequence[Sequence[Course]]) -> str:
    """Only what holds in every seed: favourites of single seeds differ easily."""
    sentences = []
    for k, course in enumerate(seeds[0]):
        late = np.array([dimensions[k].late for dimensions in seeds])  # [S, R]
        regions = course.dimension.regions
        centre = late @ (np.arange(regions) + 0.5) / regions  # 0: the lowest region, 1: the highest
        lean = "low" if (centre < 0.4).all() else "high" if (centre > 0.6).all() else ""
        if course.dimension.component < 0:
            lean = ""  # a joint dimension has no low and high
        favourites = all(dimensions[k].has_favourite for dimensions in seeds)
        if lean and favourites:
            sentences.append(f"{course.dimension.name} leans to its {lean} end")
        elif favourites:
            sentences.append(f"{course.dimension.name} has favourites, but no side in common")
        else:
            sentences.append(f"{course.dimension.name} has no clear preference")
    count = f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed, which says nothing about chance"
    return (
        f"{title}, last {LATE:.0%} of the frames, {count}: {'; '.join(sentences)}. "
        "(A preference counts where, in every seed, one region has more than twice its even share, and more "
        "than chance would give it; a side, where every seed's mean place is below 40% or above 60% of the "
        "range.)"
    )


def _lines(title: str, seeds: Sequence[Sequence[Course]]) -> list[str]:
    lines = []
    for k, course in enumerate(seeds[0]):
        dimension = course.dimension
        each = []
        for dimensions in seeds:
            late = dimensions[k].late
            each.append(f"{region_name(dimension, int(late.argmax()))}: {late.max():.0%}")
        noises = [dimensions[k].noise for dimensions in seeds]
        known = ", ".join("-" if np.isnan(x) else f"{x:.2f}" for x in noises)
        lines.append(f"| {title} | {dimension.name} | {dimension.regions} | {'; '.join(each)} | {known} |")
    return lines


def _rows(
    task: str, label: str, paths: Sequence[Path], seeds: Sequence[Sequence[Course]]
) -> list[dict[str, Any]]:
    rows = []
    for path, dimensions in zip(paths, seeds, strict=True):
        for course in dimensions:
            for region in range(course.dimension.regions):
                for column in range(course.chosen.shape[1]):
                    value = course.mean_return[region, column]
                    rows.append(
                        {"task": task, "variant": label, "run": path.name, "dimension": course.dimension.name}
                        | {"region": region_name(course.dimension, region)}
                        | {
                            "frames": int(course.edges[column + 1]),
                            "chosen": int(course.chosen[region, column]),
                        }
                        | {"mean_return": None if np.isnan(value) else float(value)}
                    )
    return rows
