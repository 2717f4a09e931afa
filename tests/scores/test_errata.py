"""The paper's cells that its own raw scores contradict: these, and no others."""

from __future__ import annotations

import pytest

from lbc.scores import errata, games, hns, published, reference_errata
from lbc.scores.errata import UNUSED, agrees, mean_with_elsewhere
from lbc.scores.reference import rows

GDI_HNS, GDI_HWRB = "HNS table, GDI-H3 and LBC", "HWRB table, GDI-H3 and LBC"
MODEL_BASED = "HNS table, model-based agents"

PRINTED = {
    (GDI_HNS, "GDI-H3", "Crazy Climber", "919.76", 884.45),
    (GDI_HNS, "GDI-H3", "Time Pilot", "26924.45", 26922.83),
    (GDI_HNS, "GDI-H3", "hns/mean", "4989.31", 9620.28),
    (GDI_HNS, "GDI-H3", "hns/median", "1451.55", 1146.39),
    (GDI_HWRB, "GDI-H3", "Ice Hockey", "0", 1),
    (GDI_HWRB, "GDI-H3", "Robotank", "0", 1),
    (GDI_HWRB, "LBC", "Robotank", "0", 1),
    (MODEL_BASED, "EfficientZero", "hns/mean", "194.3", 193.48),
    (MODEL_BASED, "EfficientZero", "hns/median", "109", 111.53),
}
# What the source defines for LBC and MEME without printing it: GDI-H3's numbers, and 38.5 days times five.
UNPRINTED = {
    "hwrns/mean": "154.27", "hwrns/median": "50.63", "saber/mean": "71.26", "saber/median": "50.63",
    "efficiency/hwrb": "1.10E-07", "efficiency/hwrns/mean": "7.71E-09", "efficiency/hwrns/median": "2.53E-09",
    "efficiency/saber/mean": "3.56E-09", "efficiency/saber/median": "2.53E-09", "days": "192.5",
}  # fmt: skip
OF_LBC = UNPRINTED | {"efficiency/hns/mean": "4.81E-07", "efficiency/hns/median": "5.73E-08"}
OF_MEME = UNPRINTED | {"hwrb": "24"}


def test_the_printed_cells_that_disagree() -> None:
    found = {
        (e.where, e.agent, e.what, e.printed, round(e.recomputed, 2)) for e in errata() if e.where != UNUSED
    }
    assert found == PRINTED


@pytest.mark.parametrize(("agent", "expected"), [("LBC", OF_LBC), ("MEME", OF_MEME)])
def test_the_numbers_of_the_source_that_disagree(agent: str, expected: dict[str, str]) -> None:
    found = [e for e in errata() if e.where == UNUSED and e.agent == agent]
    assert {e.what: e.printed for e in found} == expected
    for erratum in found:
        owner = {"days": "", "hwrb": "LBC's number"}.get(erratum.what, "GDI-H3's number")
        assert erratum.note == owner


def test_nobody_else_is_listed() -> None:
    assert len(errata()) == len(PRINTED) + len(OF_LBC) + len(OF_MEME)


def test_every_printed_cell_was_looked_at() -> None:
    cells = [
        cell for row in rows("paper_games.csv") for column, cell in row.items() if column != "game" and cell
    ]
    # Eight tables: three columns or two, of which EfficientZero has 26 games and Go-Explore 55.
    assert len(cells) == 2 * (3 * 57 + 57 + 26 + 57 + 55 + 57 + 57 + 57)
    assert len(rows("paper_games.csv")) == 57


def test_the_sums_under_the_flags_were_right_all_the_same() -> None:
    by_agent = {"gdi_h3": (20, "22"), "lbc_bm": (23, "24")}
    for key, (flags, printed) in by_agent.items():
        column = f"hwrb/gdi/{key}"
        assert sum(int(row[column]) for row in rows("paper_games.csv")) == flags
        cells = [
            r["printed"]
            for r in rows("paper_aggregates.csv")
            if (r["where"], r["agent"]) == ("hwrb/gdi", key)
        ]
        assert cells == [printed]


@pytest.mark.parametrize(
    ("game", "human", "printed"), [("Crazy Climber", 35829.4, "919.76"), ("Time Pilot", 5229.1, "26924.45")]
)
def test_the_explanations_explain(game: str, human: float, printed: str) -> None:
    assert agrees(hns(published("gdi_h3")[game], games()[game].random, human), printed)
    (note,) = [e.note for e in errata() if e.what == game]
    assert str(human) in note


def test_reference_scores_that_are_printed_otherwise_elsewhere() -> None:
    found = {(r.game, r.column): (r.printed, r.elsewhere) for r in reference_errata()}
    assert found == {
        ("Battle Zone", "random"): (236.0, 2360.0),
        ("Crazy Climber", "human"): (36829.4, 35829.4),
        ("Video Pinball", "random"): (0.0, 16256.9),
    }
    pinball = next(r for r in reference_errata() if r.game == "Video Pinball")
    assert pinball.lbc_hns_elsewhere == pytest.approx(100 * (999999 - 16256.9) / (17667.9 - 16256.9))
    changes = sum(r.lbc_hns_elsewhere - r.lbc_hns for r in reference_errata())
    assert mean_with_elsewhere() == pytest.approx(10077.52 + changes / 57, abs=0.01)


@pytest.mark.parametrize(
    ("number", "printed", "same"),
    [
        (193.48, "194.3", False), (194.34, "194.3", True), (0.125, "0.12", True), (0.135, "0.12", False),
        (108.6, "109", True), (4.764e-10, "4.76E-10", True), (4.77e-10, "4.76E-10", False),
        (-1.004, "-1.00", True),
    ],
)  # fmt: skip
def test_a_cell_agrees_if_the_number_rounds_to_it(number: float, printed: str, same: bool) -> None:
    assert agrees(number, printed) is same
