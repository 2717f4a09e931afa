"""Every link between the pages leads somewhere: the file is there, and so is the heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "results" / "README.md", *ROOT.glob("docs/*.md")]


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, words joined by hyphens, no other signs."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def test_a_heading_that_moved_would_be_noticed() -> None:
    assert "replay-torso-pixels" in anchors(ROOT / "docs" / "performance.md")
    assert "replay-torso" not in anchors(ROOT / "docs" / "performance.md")
