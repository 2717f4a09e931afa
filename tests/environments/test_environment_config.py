"""Configs refuse nonsense with a reason; ``make`` and ``list_ids`` know the same games."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lbc.config import EnvironmentConfig
from lbc.environments import list_ids, make
from lbc.environments.cores import usable_cores
from lbc.errors import UserError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""),
        ("frame_stack", 0),
        ("image_size", 15),
        ("image_size", 211),
        ("action_repeat", 0),
        ("max_noops", -1),
        ("sticky_actions", 1.0),
        ("sticky_actions", -0.1),
        ("sticky_actions", float("nan")),
        ("max_episode_frames", 3),
        ("minatar_sticky", 1.5),
        ("deepsea_depth", 1),
        ("catch_rows", 1),
        ("catch_columns", 1),
        ("catch_columns", 20),
        ("catch_actions", 2),
        ("max_episode_steps", -1),
        ("threads", -1),
    ],
)
def test_a_bad_value_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(UserError, match=field):
        EnvironmentConfig(**{field: value})


def test_the_smallest_values_are_fine() -> None:
    EnvironmentConfig(
        frame_stack=1, image_size=16, action_repeat=1, max_noops=0, max_episode_frames=1, deepsea_depth=2,
        catch_rows=2, catch_columns=3, catch_actions=3,
    )  # fmt: skip


def test_families_list_their_ids() -> None:
    known = list_ids()
    assert known["toy"] == ["catch", "deepsea"]
    assert known["minatar"][0] == "MinAtar/Asterix" and len(known["minatar"]) == 5
    assert {"ALE/Pong-v5", "ALE/MsPacman-v5", "ALE/UpNDown-v5"} <= set(known["atari"])
    assert {"CartPole-v1", "Acrobot-v1"} <= set(known["gymnasium"])
    assert not [name for name in known["gymnasium"] if "Pong" in name or "Cheetah" in name]


@pytest.mark.parametrize(
    ("id", "meant"), [("catsh", "catch"), ("CartPoll-v1", "CartPole-v1"), ("pong", "Pong")]
)
def test_a_misspelled_id_names_the_nearest(id: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"unknown environment '{id}'. Did you mean '{meant}'"):
        make(EnvironmentConfig(id=id), 1)


def test_at_least_one_copy() -> None:
    with pytest.raises(UserError, match="num_envs must be at least 1"):
        make(EnvironmentConfig(), 0)


def test_cores_follow_affinity_and_the_container_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert usable_cores(tmp_path) == 8
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    for quota, cores in (("-1", 8), ("500000", 5)):
        (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
        assert usable_cores(tmp_path) == cores, "version 1"
    for limit, cores in (("max 100000", 8), ("350000 100000", 3), ("50000 100000", 1), ("1600000 100000", 8)):
        (tmp_path / "cpu.max").write_text(limit + "\n")
        assert usable_cores(tmp_path) == cores, "version 2"
