"""Findings as HTML: a colour, a shape and a word each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from lbc.pages.diagnostics import Finding, Light, diagnose
from lbc.pages.groups import GamePart, Variant

WORDS: dict[Light, str] = {"green": "good", "amber": "watch", "red": "bad", "grey": "unknown"}
WORST: tuple[Light, ...] = ("red", "amber", "green", "grey")
# One symbol per light, drawn where `light` says so.
SHAPES = """<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<symbol id="light-green" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="currentColor"/></symbol>
<symbol id="light-amber" viewBox="0 0 16 16"><path d="M8 1 L15.5 15 H0.5 Z" fill="currentColor"/></symbol>
<symbol id="light-red" viewBox="0 0 16 16">
<path d="M5 1 H11 L15 5 V11 L11 15 H5 L1 11 V5 Z" fill="currentColor"/>
<path d="M5 5 L11 11 M11 5 L5 11" stroke="var(--paper)" stroke-width="2"/></symbol>
<symbol id="light-grey" viewBox="0 0 16 16">
<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="2"/></symbol></defs></svg>"""


def light(kind: Light, more: str = "") -> str:
    shape = f'<svg aria-hidden="true"><use href="#light-{kind}"/></svg>'
    return f'<span class="light {kind}">{shape}{WORDS[kind]}{more}</span>'


def worst(findings: Sequence[Finding]) -> Light:
    lights = {finding.light for finding in findings}
    return next((kind for kind in WORST if kind in lights), "grey")


def diagnosed(variant: Variant) -> list[Finding]:
    """One finding per sign: that of the seed where it is worst, with a word on how many share it."""
    merged = []
    for findings in zip(*(diagnose(run.reports) for run in variant.runs), strict=True):
        kind = worst(findings)
        same = [i for i, finding in enumerate(findings) if finding.light == kind]
        finding = findings[same[0]]
        if len(findings) > 1 and finding.advice:
            seed = variant.runs[same[0]].seed
            says = f"{finding.says} (Seed {seed}; {len(same)} of {len(findings)} seeds are so.)"
            finding = replace(finding, says=says)
        merged.append(finding)
    return merged


def diagnostics(part: GamePart, found: Mapping[str, Sequence[Finding]]) -> str:
    """Every variant with its signs; folded where there are several and nothing is bad."""
    pieces = []
    for variant in part.variants:
        findings = sorted(found[variant.label], key=lambda finding: WORST.index(finding.light))
        counts = {kind: sum(finding.light == kind for finding in findings) for kind in WORST}
        tally = "".join(light(kind, f" {count}") for kind, count in counts.items() if count)
        opened = " open" if len(part.variants) == 1 or counts["red"] else ""
        pieces.append(
            f"<details{opened}><summary><b>{escape(variant.label)}</b>"
            f'<span class="tally">{tally}</span></summary>'
            f'<ul class="findings">{"".join(map(_item, findings))}</ul></details>'
        )
    return "".join(pieces)


def _item(finding: Finding) -> str:
    advice = f'<span class="advice">Try: {escape(finding.advice)}</span>' if finding.advice else ""
    return (
        f"<li>{light(finding.light)}<b>{escape(finding.name)}</b>"
        f'<span class="says">{escape(finding.says)}{advice}</span></li>'
    )
