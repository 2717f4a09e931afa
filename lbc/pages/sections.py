"""The parts of a report as HTML.  Whatever comes from a disk is escaped: a name may hold anything."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from lbc.pages import charts
from lbc.pages.diagnostics import Finding, Light, diagnose
from lbc.pages.groups import GamePart, Variant, differences
from lbc.pages.reading import Run, version_of
from lbc.pages.steering import Film
from lbc.reporting.curves import FEW, interval, interval_name
from lbc.scores import hns
from lbc.scores.tables import short

WORDS: dict[Light, str] = {"green": "good", "amber": "watch", "red": "bad", "grey": "unknown"}
WORST: tuple[Light, ...] = ("red", "amber", "green", "grey")
_MACHINE = ("run.runtime", "run.device", "run.precision", "run.threads", "actor.num_envs", "actor.workers")


class Figures:
    """Collects the data of figures; what it returns is their place in the page."""

    def __init__(self) -> None:
        self.data: list[charts.Figure] = []

    def place(self, figure: charts.Figure | None, game: int, size: str = "", caption: str = "") -> str:
        if figure is None:
            return ""
        self.data.append(figure)
        name = f"{figure['title']}. {caption}".strip()
        return (
            f'<figure><div class="chart {size}" role="img" aria-label="{escape(name)}" data-game="{game}"'
            f' data-figure="{len(self.data) - 1}"></div>'
            + (f"<figcaption>{escape(caption)}</figcaption>" if caption else "")
            + "</figure>"
        )


def tiles(part: GamePart, found: dict[str, list[Finding]]) -> str:
    """What a hurried reader wants to know."""
    best = max(part.variants, key=lambda variant: np.mean(_finals(variant)))
    lights = [finding.light for findings in found.values() for finding in findings]
    worst = next((light for light in WORST if light in lights), "grey")
    hours = sum(run.seconds for run in part.runs) / 3600.0
    count = len(part.runs)
    facts = [
        (
            f"{np.mean(_finals(best)):,.4g}",
            f"final score of {best.label}" if len(part.variants) > 1 else "final score",
        ),
        (str(count), f"run{'s' * (count > 1)} of {_counted(len(part.variants), 'configuration')}"),
        (short(sum(run.most("frames") for run in part.runs)), "frames in all"),
        (_hours(hours), "of training in all"),
        (light(worst), "is the worst sign"),
    ]
    cells = "".join(
        f"<li><b>{value if '<' in value else escape(value)}</b><span>{escape(what)}</span></li>"
        for value, what in facts
    )
    return f'<ul class="tiles">{cells}</ul>'


def legend(part: GamePart, game: int) -> str:
    """Buttons that show and hide a variant in all figures of its game."""
    if len(part.variants) == 1:
        return ""
    items = "".join(
        f'<li><button type="button" aria-pressed="true" data-game="{game}" data-line="{i}">'
        f'<span class="swatch" style="border-top-color:var(--c{i % 7});border-top-style:{_dash(i)}"></span>'
        f"{escape(variant.label)}</button></li>"
        for i, variant in enumerate(part.variants)
    )
    return f'<ul class="legend" aria-label="Show or hide">{items}</ul>'


def block_legend(figure: charts.Figure | None) -> str:
    if figure is None:
        return ""
    items = "".join(
        f'<li><span class="block" style="background:var(--c{series["colour"] % 7})"></span>{escape(series["name"])}</li>'
        for series in figure["series"]
    )
    return f'<ul class="legend">{items}</ul>'


def curves_caption(part: GamePart) -> str:
    most = max(len(variant.runs) for variant in part.variants)
    if most == 1:
        return "One seed each: no interval can be given."
    kinds = dict.fromkeys(interval_name(len(v.runs)) for v in part.variants if len(v.runs) > 1)
    return f"Lines: means over seeds. Bands: {', or '.join(kinds)}. Thin lines: single seeds."


def score_table(part: GamePart) -> str:
    normalised = part.reference is not None
    headings = [
        "final",
        "best",
        *(["human-normalised"] if normalised else []),
        "frames",
        "episodes",
        "hours",
        "frames/s",
    ]
    head = "".join(f'<th scope="col" class="number">{name}</th>' for name in headings)
    rows = []
    for variant in part.variants:
        many = len(variant.runs) > 1
        if many:
            finals = np.array(_finals(variant))
            low, high = interval(finals)
            score = f"{finals.mean():,.4g} <small>[{low:,.4g}, {high:,.4g}]</small>"
            rows.append(
                _row("mean", f"{variant.label}, {len(variant.runs)} seeds", score, _means(part, variant), "")
            )
        for run in variant.runs:
            name = f"seed {run.seed}" if many else _named(variant, run)
            rows.append(
                _row("seed" if many else "", name, f"{_final(run):,.4g}", _facts(part, run), run.outcome)
            )
    note = "Final: mean score over the last tenth of the frames. Best: the highest reported mean."
    several = [len(variant.runs) for variant in part.variants if len(variant.runs) > 1]
    if several:
        kinds = dict.fromkeys(interval_name(count) for count in several)
        note += (
            f" In brackets: {', or '.join(kinds)}{' (three seeds at most)' * (len(kinds) > 1 and FEW == 3)}."
        )
    if normalised and part.reference is not None:
        note += f" Human-normalised: 0% is chance ({part.reference.random:g}), 100% a human ({part.reference.human:g})."
    else:
        note += " There are no human reference scores for this game."
    return (
        f'{_wide("Scores")}<table><thead><tr><th scope="col">run</th>{head}<th scope="col">state</th></tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div><p class="quiet">{escape(note)}</p>'
    )


def diagnostics(part: GamePart, found: dict[str, list[Finding]]) -> str:
    """Every variant with its signs, the worst seed speaking for all; folded where there is nothing to do."""
    pieces = []
    for variant in part.variants:
        findings = found[variant.label]
        counts = {kind: sum(finding.light == kind for finding in findings) for kind in WORST}
        tally = " ".join(
            f'<span class="tally">{light(kind)}&nbsp;{n}</span>' for kind, n in counts.items() if n
        )
        opened = " open" if len(part.variants) == 1 or counts["red"] else ""
        items = "".join(
            f'<li>{light(finding.light)}<b>{escape(finding.name)}</b><span class="says">{escape(finding.says)}'
            + (f'<span class="advice">Try: {escape(finding.advice)}</span>' if finding.advice else "")
            + "</span></li>"
            for finding in sorted(findings, key=lambda finding: WORST.index(finding.light))
        )
        pieces.append(
            f"<details{opened}><summary><b>{escape(variant.label)}</b>{tally}</summary>"
            f'<ul class="findings">{items}</ul></details>'
        )
    return "".join(pieces)


def diagnosed(variant: Variant) -> list[Finding]:
    """One finding per sign: that of the seed where it is worst, with a word on how many share it."""
    merged = []
    for findings in zip(*(diagnose(run.reports) for run in variant.runs), strict=True):
        worst = min(findings, key=lambda finding: WORST.index(finding.light))
        same = sum(finding.light == worst.light for finding in findings)
        if len(findings) > 1 and worst.light in ("red", "amber"):
            seed = variant.runs[findings.index(worst)].seed
            says = f"{worst.says} (Seed {seed}; {same} of {len(findings)} seeds are so.)"
            worst = Finding(worst.name, worst.light, says, worst.advice)
        merged.append(worst)
    return merged


def behaviors(part: GamePart, game: int, figures: Figures) -> str:
    """Regions and responsibility, variant by variant."""
    pieces = []
    for variant in part.variants:
        heats = charts.regions(variant)
        who = charts.responsibility(variant)
        if not heats and who is None:
            continue
        maps = "".join(
            f"<div><h4>{escape(figure['title'])}</h4>{figures.place(figure, game, 'small', _brightest(figure))}</div>"
            for figure in heats
        )
        shares = (
            f"<h4>Who is responsible</h4>{block_legend(who)}{figures.place(who, game, 'low')}" if who else ""
        )
        regions = (
            "<p>Which regions of τ and ω the controller chose over training: each row a region, bright where many"
            f' episodes began.</p><div class="many">{maps}</div>'
            if maps
            else ""
        )
        first = " open" if not pieces else ""
        pieces.append(
            f"<details{first}><summary><b>{escape(variant.label)}</b></summary>{regions}{shares}</details>"
        )
    if not pieces:
        return (
            '<p class="quiet">These runs kept no choices and no shares (archived runs keep curves only).</p>'
        )
    return "".join(pieces)


def films(film: Film | None) -> str:
    if film is None:
        return ""
    if not film.uri:
        return f'<h3>Who is steering</h3><p class="quiet">{escape(film.says)}</p>'
    return (
        "<h3>Who is steering</h3><p>The game, and beside it what every policy would do; bars on the right are"
        ' shares in the action that was taken.</p><details class="moving" open><summary>Film</summary>'
        f'<img class="film" src="{film.uri}" alt="Film of an episode with every policy\'s opinion">'
        f'</details><p class="quiet">{escape(film.says)}</p>'
    )


def configuration(part: GamePart) -> str:
    """What differs between variants first, everything else folded."""
    differing = differences(part.variants)
    pieces = []
    if differing:
        head = "".join(f'<th scope="col">{escape(variant.label)}</th>' for variant in part.variants)
        rows = "".join(
            f'<tr><th scope="row"><code>{escape(key)}</code></th>'
            + "".join(
                f'<td class="differs"><code>{_value(v.settings.get(key))}</code></td>' for v in part.variants
            )
            + "</tr>"
            for key in differing
        )
        pieces.append(
            f'<h4>What differs</h4>{_wide("What differs")}<table><thead><tr><th scope="col">setting</th>{head}</tr>'
            f"</thead><tbody>{rows}</tbody></table></div>"
        )
    for variant in part.variants:
        rows = "".join(
            f'<tr><th scope="row"><code>{escape(key)}</code></th>'
            f"<td{' class=differs' if key in differing else ''}><code>{_value(value)}</code></td></tr>"
            for key, value in variant.settings.items()
        )
        body = (
            f"{_wide('Settings')}<table><tbody>{rows}</tbody></table></div>" if rows else "<p>Not known.</p>"
        )
        pieces.append(
            f"<details><summary>All settings of <b>{escape(variant.label)}</b></summary>{body}</details>"
        )
    return "".join(pieces)


def machines(part: GamePart) -> str:
    """As far as the runs have written it down."""
    rows = []
    for variant in part.variants:
        settings = variant.settings
        facts = [f"{key.partition('.')[2]} {settings[key]}" for key in _MACHINE if key in settings]
        versions = sorted({found for found in map(version_of, variant.runs) if found})
        finished = [str(run.summary["finished_at"]) for run in variant.runs if run.summary.get("finished_at")]
        rows.append(
            f'<tr><th scope="row">{escape(variant.label)}</th><td>{escape(", ".join(facts) or "not recorded")}</td>'
            f"<td>{escape(', '.join(versions) or 'not recorded')}</td>"
            f"<td>{escape(max(finished) if finished else 'not recorded')}</td></tr>"
        )
    return (
        f"{_wide('Machine and versions')}<table><thead><tr>"
        + "".join(f'<th scope="col">{name}</th>' for name in ("run", "machine", "lbc", "last finished"))
        + f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def light(kind: Light) -> str:
    """A colour, a shape and a word: any one of them is enough."""
    return f'<span class="light {kind}"><svg aria-hidden="true"><use href="#light-{kind}"/></svg>{WORDS[kind]}</span>'


def _wide(name: str) -> str:
    """A table that scrolls in its own box, by keys as well."""
    return f'<div class="wide" role="region" aria-label="{name}" tabindex="0">'


def _row(kind: str, name: str, score: str, facts: Sequence[str], state: str) -> str:
    cells = "".join(f'<td class="number">{escape(fact)}</td>' for fact in facts)
    return (
        f'<tr class="{kind}"><th scope="row">{escape(name)}</th><td class="number">{score}</td>{cells}'
        f"<td>{escape(state)}</td></tr>"
    )


def _facts(part: GamePart, run: Run) -> list[str]:
    curve = run.curve()
    best = float(curve.scores.max()) if curve is not None else float("nan")
    frames, seconds = run.most("frames"), run.seconds
    human = (
        [f"{hns(_final(run), part.reference.random, part.reference.human):,.1f}%"] if part.reference else []
    )
    speed = f"{frames / seconds:,.0f}" if seconds > 0 else "–"
    return [
        f"{best:,.4g}",
        *human,
        short(frames),
        f"{run.most('episodes'):,.0f}",
        f"{seconds / 3600:,.2f}",
        speed,
    ]


def _means(part: GamePart, variant: Variant) -> list[str]:
    """Of all seeds; the score's own cell has an interval."""
    runs, finals = variant.runs, np.array(_finals(variant))
    best = np.mean([curve.scores.max() for curve in (run.curve() for run in runs) if curve is not None])
    frames = float(np.mean([run.most("frames") for run in runs]))
    seconds = float(np.mean([run.seconds for run in runs]))
    episodes = float(np.mean([run.most("episodes") for run in runs]))
    human = (
        [f"{hns(float(finals.mean()), part.reference.random, part.reference.human):,.1f}%"]
        if part.reference
        else []
    )
    speed = f"{frames / seconds:,.0f}" if seconds > 0 else "–"
    return [f"{best:,.4g}", *human, short(frames), f"{episodes:,.0f}", f"{seconds / 3600:,.2f}", speed]


def _final(run: Run) -> float:
    curve = run.curve()
    return float("nan") if curve is None else curve.final


def _finals(variant: Variant) -> list[float]:
    return [_final(run) for run in variant.runs]


def _named(variant: Variant, run: Run) -> str:
    return variant.label if run.seed is None else f"{variant.label}, seed {run.seed}"


def _brightest(figure: charts.Figure) -> str:
    most = max((value for row in figure["z"] for value in row if value is not None), default=0.0)
    return f"Brightest: {most:.0%} of the episodes."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if hours >= 1 else f"{60 * hours:,.1f} min"


def _dash(index: int) -> str:
    return ("solid", "dashed", "dotted")[index // 7 % 3]


def _value(value: Any) -> str:
    return "–" if value is None else escape(str(value))
