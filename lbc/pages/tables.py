"""The tables of a report: scores, settings, machines.  Whatever comes from a disk is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from lbc.pages.groups import GamePart, Variant, differences
from lbc.pages.reading import Run, machine_of
from lbc.reporting.curves import interval, interval_name
from lbc.scores import hns
from lbc.scores.tables import short

_MACHINE = ("run.runtime", "run.device", "run.precision", "run.threads", "actor.num_envs", "actor.workers")


def table(name: str, headings: Sequence[str], rows: Iterable[str], numbers: Iterable[int] = ()) -> str:
    """Scrolls in a box of its own, by keys as well; `numbers`: columns that stand to the right."""
    right = set(numbers)
    cells = (
        f'<th scope="col"{" class=number" if i in right else ""}>{escape(heading)}</th>'
        for i, heading in enumerate(headings)
    )
    head = f"<thead><tr>{''.join(cells)}</tr></thead>" if headings else ""
    return (
        f'<div class="wide" role="region" aria-label="{escape(name)}" tabindex="0">'
        f"<table>{head}<tbody>{''.join(rows)}</tbody></table></div>"
    )


def score_table(part: GamePart) -> str:
    """Each variant, and below it its seeds."""
    headings = ["run", "final", "best", *(["human-normalised"] if part.reference else [])]
    headings += ["frames", "episodes", "hours", "frames/s", "state"]
    rows = []
    for variant in part.variants:
        if len(variant.runs) == 1:
            (run,) = variant.runs
            name = variant.label if run.seed is None else f"{variant.label}, seed {run.seed}"
            rows.append(_row("", name, part, [run]))
            continue
        rows.append(_row("mean", f"{variant.label}, {len(variant.runs)} seeds", part, variant.runs))
        rows += [_row("seed", f"seed {run.seed}", part, [run]) for run in variant.runs]
    found = table("Scores", headings, rows, range(1, len(headings) - 1))
    return f'{found}<p class="quiet">{escape(" ".join(_notes(part)))}</p>'


def _notes(part: GamePart) -> list[str]:
    notes = ["Final: mean score over the last tenth of the frames. Best: the highest reported mean."]
    kinds = dict.fromkeys(
        interval_name(len(variant.runs)) for variant in part.variants if len(variant.runs) > 1
    )
    if kinds:
        notes.append(f"In brackets: {', or '.join(kinds)}.")
    uneven = [variant.label for variant in part.variants if not variant.even]
    if uneven:
        notes.append(f"Not equally far, so that a mean says little: the seeds of {', '.join(uneven)}.")
    if part.reference is None:
        return [*notes, "There are no human reference scores for this game."]
    chance, human = part.reference.random, part.reference.human
    return [*notes, f"Human-normalised: 0% is chance ({chance:g}), 100% a human ({human:g})."]


def _row(kind: str, name: str, part: GamePart, runs: Sequence[Run]) -> str:
    """Means over `runs`; the final score of several has an interval."""
    finals = np.array([run.final for run in runs])
    score = f"{finals.mean():,.4g}"
    if len(runs) > 1:
        low, high = interval(finals)
        score += f" <small>[{low:,.4g}, {high:,.4g}]</small>"
    frames, seconds, episodes = (
        float(np.mean([run.most(key) for run in runs])) for key in ("frames", "seconds", "episodes")
    )
    facts = [f"{np.mean([run.best for run in runs]):,.4g}"]
    if part.reference is not None:
        facts.append(f"{hns(float(finals.mean()), part.reference.random, part.reference.human):,.1f}%")
    facts += [short(frames), f"{episodes:,.0f}", f"{seconds / 3600:,.2f}"]
    facts.append(f"{frames / seconds:,.0f}" if seconds > 0 else "–")
    cells = "".join(f'<td class="number">{fact}</td>' for fact in (score, *facts))
    states = escape(", ".join(dict.fromkeys(run.outcome for run in runs)))
    return f'<tr class="{kind}"><th scope="row">{escape(name)}</th>{cells}<td>{states}</td></tr>'


def configuration(part: GamePart) -> str:
    """What differs between variants first, everything else folded."""
    differing = differences(part.variants)
    pieces = []
    if differing:
        rows = (_setting(key, [v.settings.get(key) for v in part.variants], True) for key in differing)
        labels = [variant.label for variant in part.variants]
        pieces.append(f"<h4>What differs</h4>{table('What differs', ['setting', *labels], rows)}")
    for variant in part.variants:
        rows = (_setting(key, [value], key in differing) for key, value in variant.settings.items())
        body = table(f"Settings of {variant.label}", [], rows) if variant.settings else "<p>Not known.</p>"
        name = f"All settings of <b>{escape(variant.label)}</b>"
        pieces.append(f"<details><summary>{name}</summary>{body}</details>")
    return "".join(pieces)


def _setting(key: str, values: Sequence[Any], differs: bool) -> str:
    mark = ' class="differs"' if differs else ""
    texts = ("–" if value is None else escape(str(value)) for value in values)
    cells = "".join(f"<td{mark}><code>{text}</code></td>" for text in texts)
    return f'<tr><th scope="row"><code>{escape(key)}</code></th>{cells}</tr>'


def machines(part: GamePart) -> str:
    """As far as the runs have written it down."""
    headings = ("run", "machine", "versions", "settings", "last finished")
    return table("Machine and versions", headings, map(_machine, part.variants))


def _machine(variant: Variant) -> str:
    found = [machine_of(run) for run in variant.runs]
    settings = [
        f"{key.partition('.')[2]} {variant.settings[key]}" for key in _MACHINE if key in variant.settings
    ]
    finished = [str(run.summary["finished_at"]) for run in variant.runs if run.summary.get("finished_at")]
    texts = (
        _each(", ".join(_named(one, "device", "processor", "usable_cores")) for one in found),
        _each(", ".join(_named(one, "lbc", "torch", "python")) for one in found),
        ", ".join(settings),
        max(finished, default="")[:16].replace("T", " "),
    )
    cells = "".join(
        f"<td{' class=words' * (i < 3)}>{escape(text or 'not recorded')}</td>" for i, text in enumerate(texts)
    )
    return f'<tr><th scope="row">{escape(variant.label)}</th>{cells}</tr>'


def _named(machine: Mapping[str, str], *keys: str) -> list[str]:
    words = {"device": "{}", "processor": "{}", "usable_cores": "{} cores"}
    return [words.get(key, key + " {}").format(machine[key]) for key in keys if key in machine]


def _each(texts: Iterable[str]) -> str:
    return "; ".join(sorted({text for text in texts if text}))
