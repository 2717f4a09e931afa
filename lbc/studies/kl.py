"""Do policies stay apart?  Two learners of one shared target policy against two with targets of their own.

The paper's case study: GDI-H3 learns two advantage functions, under two reward shapings, of one and the
same target policy, its behavior; LBC learns two policies.  Drawn is how far softmax(tau_1 A_1) and
softmax(tau_2 A_2) are apart, with the taus that played, and how far softmax(A_1) and softmax(A_2) are.
"""

from __future__ import annotations

from lbc.errors import UserError
from lbc.reporting.curves import load_all
from lbc.studies.figures import compare_grid, table
from lbc.studies.findings import compared, moved
from lbc.studies.plan import Study, Variant
from lbc.studies.presentation import Canvas, Panels, Shown, curve_rows, finals

GDI_SHAPINGS = (
    "population.discounts=[0.997, 0.997]",
    'population.shapings=["log", "fourth_root"]',
)
TARGETS = {"separate targets": "", "one shared target": "+shared-target"}
KEYS = {
    "softmax with the τ that played": "kl_between_components",
    "plain softmax": "kl_between_softmax",
}


def study() -> Study:
    return Study(
        "kl",
        "Do two policies stay apart when they share their target?",
        tuple(
            Variant(label, f"catch+printed{overlay}", GDI_SHAPINGS, "Catch")
            for label, overlay in TARGETS.items()
        ),
        frames=60_000,
        present=divergences,
    )


def divergences(panels: Panels, canvas: Canvas) -> Shown:
    rows = {
        (f"{task}: " if task else "") + "KL, nats": {
            title: {label: load_all(paths, key) for label, paths in runs.items()}
            for title, key in KEYS.items()
        }
        for task, runs in panels.items()
    }
    if not compare_grid(rows, canvas.png, smooth=canvas.smooth):
        raise UserError(
            "none of these runs has reported divergences between its policies; "
            "runs of one policy have none, and older ones did not report them."
        )
    text = "\n\n".join(
        f"### {task}\n\n{table(runs)}" if task else table(runs) for task, runs in panels.items()
    )
    findings = []
    for task, runs in panels.items():
        for title, key in KEYS.items():
            at_the_end = finals(runs, key)
            if not at_the_end:
                continue
            ways = "; ".join(
                f"with {label} it {moved(load_all(runs[label], key), _short)}" for label in at_the_end
            )
            ends = compared(next(iter(at_the_end)), at_the_end, _short)
            findings.append(
                f"{task + ', ' if task else ''}{title}: KL between the policies, from the first tenth of the"
                f" frames to the last: {ways}. At the end: {ends}"
            )
    return Shown(text, "\n\n".join(findings), curve_rows(panels, {k: k for k in KEYS.values()}), [canvas.png])


def _short(value: float) -> str:
    return f"{value:.3g}"
