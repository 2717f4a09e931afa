"""Every pathology is found where it is, and not where it is not; what cannot be known is grey."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lbc.pages import Finding, diagnose
from lbc.reporting import read_metrics

NAMES = [
    "score", "numbers", "value", "target policies", "importance ratios", "behavior", "controller",
    "diversity", "features", "policy heads", "auxiliary tasks", "policy lag",
]  # fmt: skip
RESULTS = Path(__file__).parents[2] / "results"


def policy(**changes: Any) -> dict[str, Any]:
    healthy = {
        "explained_variance": 0.5, "target_entropy": 0.6, "clipped_ratio": 0.9, "kept_share": 0.9,
        "features_alive": 0.8, "policy_units_alive": 0.6, "loss_value": 0.1, "gradient_norm": 1.0,
        "value_mean": 2.0, "gradient_share_auxiliary": 0.2,
    }  # fmt: skip
    return healthy | changes


def one_of_two(**changes: Any) -> dict[str, Any]:
    return {"policies": [policy(), policy(**changes)]}


def report(i: int, **changes: Any) -> dict[str, Any]:
    """Report i of 50 of a run that learns four actions well."""
    healthy = {
        "frames": 1000 * (i + 1), "updates": 200 * (i + 1), "score_mean": 0.2 * i + 0.1 * (i % 3),
        "behavior_entropy": math.log(4) * (1.0 - 0.015 * i), "policy_lag": 3.5, "setbacks": 0,
        "dimensions": [{"name": "tau_1", "chosen": [2, 3, 1]}, {"name": "omega_1", "chosen": [3, 2, 1]}],
        "policies": [policy(), policy()], "kl_between_policies": 0.2,
    }  # fmt: skip
    return healthy | changes


def run(**changes: Any) -> list[dict[str, Any]]:
    return [report(i, **changes) for i in range(50)]


def of(name: str, reports: list[dict[str, Any]]) -> Finding:
    return next(finding for finding in diagnose(reports) if finding.name == name)


def flat(**changes: Any) -> list[dict[str, Any]]:
    """The same, of a run that learns nothing: then a sign may be red."""
    return [report(i, **({"score_mean": 0.1 * (i % 3)} | changes)) for i in range(50)]


def test_a_healthy_run_is_green_and_needs_no_advice() -> None:
    findings = diagnose(run())
    assert [finding.name for finding in findings] == NAMES
    assert {finding.light for finding in findings} == {"green"}
    assert not any(finding.advice for finding in findings)


@pytest.mark.parametrize(
    ("name", "changes", "setting"),
    [
        ("behavior", {"behavior_entropy": 0.01} | one_of_two(target_entropy=1.3), "behavior.tau_high"),
        ("target policies", one_of_two(target_entropy=1.385), "target.policy"),
        ("importance ratios", one_of_two(clipped_ratio=0.1), "behavior.on_policy_share"),
        ("importance ratios", one_of_two(kept_share=0.05), "target.trust_ratio"),
        ("controller", {"dimensions": [{"name": "tau_1", "chosen": [0, 9, 0]}]}, "controller.ucb_c_high"),
        ("value", {"policies": [policy(explained_variance=-0.2)] * 2}, "learner.popart"),
        ("features", one_of_two(features_alive=0.01), "model.centre_observations"),
        ("policy heads", one_of_two(policy_units_alive=0.04), "model.head_slope"),
        ("auxiliary tasks", one_of_two(gradient_share_auxiliary=0.99), "learner.auxiliary_scaling"),
        ("diversity", {"kl_between_policies": 1e-4}, "population.shapings"),
        ("numbers", one_of_two(loss_value=None), "learner.clip_norm"),
        ("numbers", one_of_two(gradient_norm=math.inf), "learner.learning_rate"),
        ("numbers", {"setbacks": 2}, "learner.learning_rate"),
    ],
)  # fmt: skip
def test_each_pathology_is_red_where_nothing_is_learned(
    name: str, changes: dict[str, Any], setting: str
) -> None:
    found = of(name, flat(**changes))
    assert found.light == "red"
    assert setting in found.advice
    assert of(name, flat()).light == "green"


def test_a_rising_score_softens_all_signs_but_broken_numbers() -> None:
    uniform = {"policies": [policy(target_entropy=1.385)] * 2}
    assert of("target policies", run(**uniform)).light == "amber"
    assert of("numbers", run(policies=[policy(loss_value=None)])).light == "red"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("target policies", {"policies": [policy(target_entropy=1.33)]}),
        ("importance ratios", {"policies": [policy(clipped_ratio=0.45)]}),
        ("importance ratios", {"policies": [policy(kept_share=0.3)]}),
        ("value", one_of_two(explained_variance=-0.2)),
        ("features", {"policies": [policy(features_alive=0.15)]}),
        ("policy heads", {"policies": [policy(policy_units_alive=0.2)]}),
        ("auxiliary tasks", one_of_two(gradient_share_auxiliary=0.8)),
        ("diversity", {"kl_between_policies": 0.03}),
        ("numbers", {"setbacks": 1}),
        ("controller", {"dimensions": [{"name": "a", "chosen": [9, 0]}, {"name": "b", "chosen": [3, 6]}]}),
    ],
)  # fmt: skip
def test_a_weaker_sign_is_amber(name: str, changes: dict[str, Any]) -> None:
    assert of(name, flat(**changes)).light == "amber"


def test_growing_lag_is_found_and_steady_lag_is_not() -> None:
    growing = [report(i, policy_lag=3.0 + i, score_mean=0.0) for i in range(50)]
    twice = [report(i, policy_lag=10.0 + i / 3) for i in range(50)]
    assert of("policy lag", growing).light == "red"
    assert "actor.pull_interval" in of("policy lag", growing).advice
    assert of("policy lag", twice).light == "amber"
    assert of("policy lag", run(policy_lag=60.0)).light == "green"


def test_a_flat_score_is_amber_early_and_red_late() -> None:
    assert of("score", flat()[:20]).light == "amber"
    late = of("score", flat())
    assert late.light == "red"
    assert "buffer.replay" in late.advice


def test_a_score_that_rose_and_fell_is_told_from_one_that_stayed() -> None:
    climb = [0.5 * min(i, 25) for i in range(50)]
    fall = [value if i < 30 else 0.1 for i, value in enumerate(climb)]
    half = [value if i < 30 else 5.0 for i, value in enumerate(climb)]
    light = {
        name: of("score", [report(i, score_mean=score) for i, score in enumerate(scores)]).light
        for name, scores in {"climb": climb, "fall": fall, "half": half}.items()
    }
    assert light == {"climb": "green", "fall": "red", "half": "amber"}


def test_early_policies_are_not_judged() -> None:
    early = [report(i, updates=i, policies=[policy(target_entropy=math.log(4))] * 2) for i in range(20)]
    lights = {finding.name: finding.light for finding in diagnose(early)}
    assert (lights["target policies"], lights["value"], lights["diversity"]) == ("grey", "grey", "grey")


@pytest.mark.parametrize("reports", [[], [{}], [{}] * 30, [{"frames": 1, "score_mean": None}] * 30])
def test_without_data_everything_is_grey(reports: list[dict[str, Any]]) -> None:
    assert {finding.light for finding in diagnose(reports)} == {"grey"}


def test_foreign_values_are_left_out() -> None:
    strange = [
        {
            "score_mean": "high", "behavior_entropy": [1], "updates": 10**400, "policies": {"a": 1},
            "dimensions": [3, {"chosen": "all"}, {"name": None, "chosen": [None, "x", True]}], "setbacks": {},
        }
    ] * 30  # fmt: skip
    assert {finding.light for finding in diagnose(strange)} == {"grey"}


@pytest.mark.parametrize("run", ["atari-fast-pong/lbc-bm/seed1", "minatar-breakout/lbc-bm/seed3"])
def test_real_runs_that_learned_are_not_red(run: str) -> None:
    reports = read_metrics(RESULTS / run / "metrics.jsonl")
    findings = {finding.name: finding.light for finding in diagnose(reports)}
    assert findings["score"] == "green"
    assert "red" not in findings.values()


def test_the_real_run_that_failed_is_red() -> None:
    reports = read_metrics(RESULTS / "short-pong-what-did-it/uncentred/seed1/metrics.jsonl")
    assert of("score", reports).light == "red"
