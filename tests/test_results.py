"""Numbers in README.md and results/README.md are those of the files in results/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lbc.cli.scores import refreshed

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["README.md", "results/README.md"])
def test_tables_say_what_the_files_say(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "<!-- lbc scores " in text
    assert refreshed(text, (ROOT / page).parent) == text, "`make tables` brings the tables up to date"


def test_a_number_that_was_typed_would_be_noticed() -> None:
    text = (ROOT / "README.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| Pong | LBC-BM, full size, "))
    changed = text.replace(row, row.replace(row.split("|")[3].strip(), "20.99"))
    assert changed != text and refreshed(changed, ROOT) == text


def test_the_speed_is_what_was_printed() -> None:
    printed = json.loads((ROOT / "results" / "speed" / "h200_16_cores_bench.json").read_text())
    ratios = [f"{game['trained_over_bare']:.2f}" for game in printed["games"]]
    assert len(ratios) == 3
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"trains at {min(ratios)} to {max(ratios)} of the bare emulator's speed" in text
    assert all(f"**{ratio}**" in (ROOT / "docs" / "performance.md").read_text() for ratio in ratios)
