"""The known pathologies of a run, each as a traffic light with a sentence and a remedy.

::

    for finding in diagnose(read_metrics(path)):
        print(finding.light, finding.name, finding.says, finding.advice)

Only the newest part of a run is judged, against its beginning where that matters.  A run whose score has
risen and stayed up is not ill, whatever one number says: there a red sign is amber.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, Literal

from lbc.pages.course import FEWEST, NEWEST, course, ends
from lbc.pages.numbers import Report, by_policy, column, number, records

Light = Literal["green", "amber", "red", "grey"]

FLAT_UPDATES = 5000  # short Pong has been seen to stay at chance for 3,000 updates, and then to learn
WARM_UPDATES = 500  # long Catch had uniform policies for 300 updates, and learned
VALUE_UPDATES, SLOW_VALUE_UPDATES = 1000, 3000  # MinAtar Asterix has been seen to need 2,900
ARGMAX = 0.02  # share of the greatest entropy: one action in all but a few states; healthy runs end near 0.1
UNIFORM, NEARLY_UNIFORM = 0.98, 0.95  # of the greatest entropy: differences between actions that hardly act
CUT_RATIO, SHORT_RATIO = 0.3, 0.5  # mean ratio: traces of 1.4 and 2 steps; healthy runs keep above 0.7
FEW_KEPT, SOME_KEPT = 0.1, 0.4  # share of transitions with a policy gradient; healthy runs keep above 0.6
FROZEN = 0.95  # share of the commonest region; Pong's bandits reach 0.9 and still try others
EPISODES = 30  # that a dimension needs before its commonest region means anything
LAG_GROWS, LAG_RUNS_AWAY = 2.0, 5.0  # times its beginning
LAG_MATTERS = 8.0  # updates; less is hardly off-policy, however much it grew
DEAD, SPARSE = 0.05, 0.2  # share of living features; healthy torsos keep above 0.3
DEAD_HEAD, SPARSE_HEAD = 0.1, 0.3  # of the units behind a policy; Pong was learned with 0.31 to 0.56
DROWNED, LOUD = 0.95, 0.7  # share of the auxiliary tasks in the torso's gradient; healthy runs keep below 0.4
SAME, ALIKE = 0.001, 0.04  # nats between policies; three equal learners differ by some 0.02


@dataclass(frozen=True)
class Finding:
    """What a run shows of one pathology.  `grey`: it cannot be said yet."""

    name: str
    light: Light
    says: str
    advice: str = ""  # what to try, by the names of the configuration; empty where nothing needs it


@dataclass(frozen=True)
class _History:
    """The reports, and what several checks need of them."""

    reports: Sequence[Report]
    newest: Sequence[Report]
    updates: float
    greatest_entropy: float  # log(actions), as far as the run has shown it; NaN where unknown
    course: str  # of the score


def diagnose(reports: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """One finding per known pathology, from the objects of a metrics.jsonl in the order of time.

    Reports may be thinned out, few, or lack keys; what cannot be said is grey.
    """
    history = _read(reports)
    found = []
    for name, check in _CHECKS.items():
        finding = Finding(name, *check(history))
        if finding.light == "red" and history.course == "risen" and check not in _ABSOLUTE:
            finding = replace(
                finding, light="amber", says=f"{finding.says} The score has risen all the same."
            )
        found.append(finding if finding.light in ("amber", "red") else replace(finding, advice=""))
    return found


_Verdict = tuple[Light, str, str]


def _read(reports: Sequence[Report]) -> _History:
    newest = reports[-max(FEWEST, math.ceil(NEWEST * len(reports))) :]
    updates = max(column(reports, "updates"), default=0.0)
    entropies = column(reports, "behavior_entropy")
    entropies += [value for values in by_policy(reports, "target_entropy") for value in values]
    actions = math.ceil(math.exp(min(max(entropies, default=0.0), 20.0)) - 1e-3)
    greatest = math.log(actions) if actions > 1 else math.nan
    return _History(reports, newest, updates, greatest, course(column(reports, "score_mean")))


def _score(history: _History) -> _Verdict:
    scores = column(history.reports, "score_mean")
    first, newest = ends(scores)
    if not first:
        return "grey", "Too few reports with a score.", ""
    change = f"from {fmean(first):.3g} to {fmean(newest):.3g}"
    if history.course == "risen":
        return "green", f"The score has risen {change}.", ""
    if history.course in ("fallen", "lost"):
        advice = "Lower learner.learning_rate, or set target.trust_ratio; look at the other signs first."
        lost = history.course == "lost" and history.updates >= WARM_UPDATES
        light: Light = "red" if lost else "amber"
        return light, f"The score rose and fell again, {change} in all.", advice
    advice = (
        "Fine if this is the best score there is. Otherwise look at the other signs; then more updates"
        " (smaller buffer.batch_size, more buffer.replay), or a higher learner.learning_rate."
    )
    light = "red" if history.updates >= FLAT_UPDATES else "amber"
    return light, f"The score is flat, {change}, after {history.updates:,.0f} updates.", advice


def _behavior(history: _History) -> _Verdict:
    entropies = column(history.newest, "behavior_entropy")
    if not entropies or math.isnan(history.greatest_entropy):
        return "grey", "No entropy of the behavior has been reported.", ""
    share = fmean(entropies) / history.greatest_entropy
    says = f"The behavior has {share:.0%} of the greatest entropy."
    if share < ARGMAX:
        advice = "Lower behavior.tau_high, raise learner.entropy_scaling, or set behavior.on_policy_share."
        return "red", f"{says} It plays one action and finds nothing new.", advice
    return "green", says, ""


def _targets(history: _History) -> _Verdict:
    policies = by_policy(history.newest, "target_entropy")
    if not policies or math.isnan(history.greatest_entropy):
        return "grey", "No entropy of the policies has been reported.", ""
    if history.updates < WARM_UPDATES:
        return "grey", f"Too early: {history.updates:,.0f} updates.", ""
    share = max(map(fmean, policies)) / history.greatest_entropy
    says = f"The least certain policy has {share:.0%} of the greatest entropy."
    advice = (
        "target.policy = 'scale_free' or 'decoupled' ('printed' rests here where rewards are small), a larger"
        " target.kappa, or a lower learner.entropy_scaling."
    )
    if share > UNIFORM:
        return "red", f"{says} It prefers nothing.", advice
    return "amber" if share > NEARLY_UNIFORM else "green", says, advice


def _ratios(history: _History) -> _Verdict:
    ratios = [fmean(values) for values in by_policy(history.newest, "clipped_ratio")]
    kept = [fmean(values) for values in by_policy(history.newest, "kept_share")]
    if not ratios:
        return "grey", "No importance ratios have been reported.", ""
    lowest, fewest = min(ratios), min(kept, default=1.0)
    steps = 1.0 / max(1.0 - lowest, 0.01)
    says = f"Ratios are {lowest:.2f} where they are smallest: traces of {steps:.1f} steps."
    if kept:
        says += f" {fewest:.0%} of the policy gradient is kept."
    advice = "behavior.on_policy_share = 0.25, buffer.replay = 1, or a wider target.trust_ratio, so that the"
    advice += " policies learn from what they would do."
    if lowest < CUT_RATIO or fewest < FEW_KEPT:
        return "red", says, advice
    return "amber" if lowest < SHORT_RATIO or fewest < SOME_KEPT else "green", says, advice


def _controller(history: _History) -> _Verdict:
    chosen: dict[str, list[float]] = {}
    for report in history.newest:
        for dimension in records(report, "dimensions"):
            counts = dimension.get("chosen")
            if isinstance(counts, list) and len(counts) > 1:
                sums = chosen.setdefault(str(dimension.get("name")), [0.0] * len(counts))
                for i, count in enumerate(counts[: len(sums)]):
                    sums[i] += max(0.0, number(count) or 0.0)
    shares = {name: max(sums) / sum(sums) for name, sums in chosen.items() if sum(sums) >= EPISODES}
    if not shares:
        return "grey", "Too few episodes were begun to judge the choices.", ""
    frozen = [name for name, share in shares.items() if share >= FROZEN]
    if not frozen:
        widest = max(shares, key=lambda name: shares[name])
        return "green", f"No region is alone; the commonest, of {widest}, has {shares[widest]:.0%}.", ""
    advice = "Raise controller.ucb_c_high, or lower controller.replacement_interval; with few episodes"
    advice += " controller.scope = 'shared'."
    light: Light = "red" if len(frozen) == len(shares) else "amber"
    return light, f"Always the same region: {', '.join(frozen)} ({len(frozen)} of {len(shares)}).", advice


def _value(history: _History) -> _Verdict:
    explained = [median(values) for values in by_policy(history.newest, "explained_variance")]
    if not explained or history.updates < VALUE_UPDATES:
        return "grey", "Too early, or too few whole episodes, to compare values with returns.", ""
    says = (
        f"V explains {', '.join(f'{max(value, -9.99):.2f}' for value in explained)} of the returns' variance."
    )
    advice = (
        "learner.popart = true, learner.learning_rate, longer buffer.sequence_length; with much off-policy"
    )
    advice += " data behavior.on_policy_share. Fine if all episodes end alike."
    if max(explained) <= 0:
        light: Light = "red" if history.updates >= SLOW_VALUE_UPDATES else "amber"
        return light, f"{says} It knows nothing.", advice
    return "amber" if min(explained) <= 0 else "green", says, advice


def _lag(history: _History) -> _Verdict:
    first, newest = ends(column(history.reports, "policy_lag"))
    if not first:
        return "grey", "Too few reports with a lag.", ""
    now, growth = fmean(newest), fmean(newest) / max(fmean(first), 1.0)
    says = f"The actor is {now:.1f} updates behind the learners, {growth:.1f} times as at the start."
    advice = "Lower learner.push_interval and actor.pull_interval; fewer updates per step (buffer.replay)."
    if now < LAG_MATTERS or growth < LAG_GROWS:
        return "green", f"The actor is {now:.1f} updates behind the learners, and that does not grow.", ""
    return "red" if growth >= LAG_RUNS_AWAY else "amber", says, advice


def _features(history: _History) -> _Verdict:
    alive = [fmean(values) for values in by_policy(history.newest, "features_alive")]
    if not alive:
        return "grey", "No features have been reported.", ""
    says = f"{min(alive):.0%} of the features are alive in the policy with fewest."
    advice = "Lower learner.learning_rate; where the screen is mostly background, model.centre_observations."
    return "red" if min(alive) < DEAD else "amber" if min(alive) < SPARSE else "green", says, advice


def _auxiliary(history: _History) -> _Verdict:
    shares = [median(values) for values in by_policy(history.newest, "gradient_share_auxiliary")]
    if not shares or history.updates < WARM_UPDATES:
        return "grey", "Too early, or no shares of the gradient have been reported.", ""
    says = f"{max(shares):.0%} of a torso's gradient are the auxiliary tasks' where it is most."
    advice = (
        "Lower learner.auxiliary_scaling, or do without: model.auxiliary_forward, model.auxiliary_inverse."
    )
    return "red" if max(shares) > DROWNED else "amber" if max(shares) > LOUD else "green", says, advice


def _heads(history: _History) -> _Verdict:
    alive = [fmean(values) for values in by_policy(history.newest, "policy_units_alive")]
    if not alive:
        return (
            "grey",
            "No units of the policies' heads have been reported; linear ones have none.",
            "",
        )
    says = f"{min(alive):.0%} of the units behind a policy are in use where they are fewest."
    advice = "model.head_slope = 0.1, model.centre_features, or linear heads (model.head_units = 0)."
    light: Light = "red" if min(alive) < DEAD_HEAD else "amber" if min(alive) < SPARSE_HEAD else "green"
    return light, says, advice


def _diversity(history: _History) -> _Verdict:
    if max((len(records(report, "policies")) for report in history.newest), default=0) < 2:
        return "grey", "There is one policy, or none has been reported.", ""
    between = column(history.newest, "kl_between_policies")
    if not between or history.updates < WARM_UPDATES:
        return "grey", "Too early to compare the policies.", ""
    says = f"The policies are {fmean(between):.3g} nats apart."
    advice = (
        "A trust region around the population keeps policies together, around their own past they part"
        " (target.trust_centre). Or population.discounts, population.shapings and"
        " population.entropy_scalings that differ more."
    )
    return "red" if fmean(between) < SAME else "amber" if fmean(between) < ALIKE else "green", says, advice


def _numbers(history: _History) -> _Verdict:
    setbacks = max(column(history.reports, "setbacks"), default=0.0)
    policies = [policy for report in history.reports for policy in records(report, "policies")]
    measured = [(key, policy[key]) for policy in policies for key in policy if _must_be_finite(key)]
    if not measured and not column(history.reports, "setbacks"):
        return "grey", "No losses have been reported.", ""
    broken = sorted({key for key, value in measured if math.isnan(number(value))})
    advice = "Lower learner.learning_rate and learner.clip_norm, or population.shapings that compress more."
    if broken:
        return "red", f"Not finite: {', '.join(broken)}.", advice
    if setbacks:
        says = f"{setbacks:.0f} times a gradient was not finite, and a learner went back to older weights."
        return "red" if setbacks > 1 else "amber", says, advice
    return "green", "All losses and gradients are finite.", ""


def _must_be_finite(key: str) -> bool:
    return key.startswith("loss_") or key in ("gradient_norm", "value_mean")


_CHECKS: dict[str, Callable[[_History], _Verdict]] = {
    "score": _score,
    "numbers": _numbers,
    "value": _value,
    "target policies": _targets,
    "importance ratios": _ratios,
    "behavior": _behavior,
    "controller": _controller,
    "diversity": _diversity,
    "features": _features,
    "policy heads": _heads,
    "auxiliary tasks": _auxiliary,
    "policy lag": _lag,
}
_ABSOLUTE = (_score, _numbers)  # no rise of the score excuses these
