"""How random is the behavior while it learns?  Score above, entropy of mu below, over the same frames."""

from __future__ import annotations

from lbc.errors import UserError
from lbc.reporting.curves import load_all
from lbc.studies.figures import compare_grid, table
from lbc.studies.findings import compared, moved
from lbc.studies.plan import Study, Variant
from lbc.studies.presentation import Canvas, Panels, Shown, curve_rows, finals

TASKS = {"Catch": "catch", "MinAtar Breakout": "minatar"}
ALGORITHMS = {"LBC-BM": "", "random selection": "+random-selection"}  # the second: nobody controls entropy


def study() -> Study:
    return Study(
        "entropy",
        "Does the behavior turn from exploring to exploiting?",
        tuple(
            Variant(label, preset + overlay, task=task)
            for task, preset in TASKS.items()
            for label, overlay in ALGORITHMS.items()
        ),
        frames=200_000,
        present=score_and_entropy,
    )


def score_and_entropy(panels: Panels, canvas: Canvas) -> Shown:
    keys = {"score": "score_mean", "behavior_entropy": "behavior_entropy"}
    rows = {
        ylabel: {
            task or canvas.title: {label: load_all(paths, key) for label, paths in runs.items()}
            for task, runs in panels.items()
        }
        for ylabel, key in (
            ("score per episode", "score_mean"),
            ("behavior entropy, nats", "behavior_entropy"),
        )
    }
    if not compare_grid(rows, canvas.png, canvas.references, canvas.smooth):
        raise UserError("none of these runs has reported a score or an entropy yet.")
    text = "\n\n".join(
        f"### {task}\n\n{table(runs)}" if task else table(runs) for task, runs in panels.items()
    )
    findings = []
    for task, runs in panels.items():
        curves = {label: load_all(paths, "behavior_entropy") for label, paths in runs.items()}
        known = {label: found for label, found in curves.items() if found}
        if known:
            ways = "; ".join(f"that of {label} {moved(found)}" for label, found in known.items())
            at_the_end = finals(runs, "behavior_entropy")
            words = f"{task or 'Behavior'}: the behavior's entropy, from the first to the last tenth: {ways}."
            ends = f" At the end: {compared(next(iter(at_the_end)), at_the_end)}" if len(known) > 1 else ""
            findings.append(words + ends)
    return Shown(text, "\n\n".join(findings), curve_rows(panels, keys), [canvas.png])
