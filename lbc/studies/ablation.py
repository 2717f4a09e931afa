"""What does each part contribute?  The paper's ablation, on MinAtar Breakout."""

from __future__ import annotations

from lbc.studies.runner import Study, Variant

FIRST_ALONE = ("population.discounts=[0.99]",)  # of the card's three; the overlays have the paper's


def study() -> Study:
    return Study(
        "ablation",
        "What does each part of LBC-BM contribute?",
        tuple(
            Variant(label, "+".join(("minatar", *overlays)), sets, "MinAtar Breakout")
            for label, overlays, sets in (
                ("main", (), ()),
                ("reduced H", ("reduced-h",), FIRST_ALONE),
                ("reduced H and Psi", ("reduced-h-psi",), FIRST_ALONE),
                ("random selection", ("random-selection",), ()),
                ("no UCB", ("no-ucb",), ()),
                ("rule-based F", ("rule-based",), ()),
            )
        ),
        frames=200_000,
    )
