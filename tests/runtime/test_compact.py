"""Compact checkpoints: small, and a run goes on from them with its counters, weights and bandits."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from lbc.cards import resolve
from lbc.parameters import newest, take
from lbc.runtime import SerialRun, train
from lbc.runtime.keeper import Agenda, Keeper
from tests.builders import catch_config
from tests.parameters.test_store import damaged_variants
from tests.runtime.test_local import local_config
from tests.runtime.test_resume import QUIET, StopAfter
from tests.runtime.test_serial import Notebook

COMPACT = {"checkpoint_form": "compact", "precision": "float32", **QUIET}
WIDE = {"torso_units": 40, "lstm_units": 32, "head_units": 40}


def agenda() -> Agenda:
    return Agenda(0.0, 0.0, 0.0)


def keep(run: SerialRun, root: Path) -> None:
    keeper = Keeper(root, "compact")
    keeper.save(run, agenda(), mark=3)
    keeper.wait()
    keeper.close()


def test_the_paper_s_preset_fits_into_60_megabytes(tmp_path):
    """Three policies of 3.9 million weights with dense moments, whose exponents spread wider than those of
    runs of millions of frames do; 64 environments, each with bandits of its own."""
    wishes = ["run.checkpoint_form=compact", "run.threads=1", "environment.threads=1"]
    run = SerialRun(resolve("atari", wishes, runtime="serial"))
    generator = torch.Generator().manual_seed(0)

    def moments(square: bool) -> list[torch.Tensor]:
        some = [
            torch.randn(p.shape, generator=generator) * 1e-4
            for p in run.experiment.learners[0].network.parameters()
        ]
        spread = [x * torch.randn(x.shape, generator=generator).exp() for x in some]
        return [x * x for x in spread] if square else spread

    steps = [torch.tensor(5.0) for _ in run.experiment.learners[0].network.parameters()]
    for learner in run.experiment.learners:
        learner.restore_optimizer({"step": steps, "exp_avg": moments(False), "exp_avg_sq": moments(True)})
    keep(run, tmp_path)
    sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
    print(f"{len(sizes)} files, {max(sizes) / 1e6:.1f} MB the largest, {sum(sizes) / 1e6:.1f} MB in all")
    assert max(sizes) <= 15_000_000 and sum(sizes) <= 60_000_000
    run.close()


@pytest.mark.parametrize("base", [catch_config, local_config])
def test_a_run_goes_on_with_its_counters_weights_and_bandits(base, tmp_path):
    config = base(run={"frames": 1400, **COMPACT}, model=WIDE, learner={"popart": True})
    first = train(config, Notebook(), tmp_path, StopAfter(200))
    again = Notebook()
    second = train(config, again, tmp_path, StopAfter(0), resume=True)
    for counter in ("frames", "episodes", "updates", "score_mean", "favourite_tau", "favourite_omega"):
        assert second[counter] == first[counter], counter
    last = train(config, again, tmp_path, lambda: False, resume=True)
    assert last["outcome"] == "finished" and last["updates"] > first["updates"]


def test_what_is_restored_is_what_was_kept_to_eight_bits(tmp_path):
    config = catch_config(run={"frames": 3000, **COMPACT}, model=WIDE)
    run, other = SerialRun(config), SerialRun(config)
    for _ in range(100):
        run.step()
    keep(run, tmp_path)
    assert Keeper(tmp_path, "compact").restore(other, agenda()) == 3
    kept, found = {}, {}
    take(run.experiment.learners, kept), take(other.experiment.learners, found)
    assert kept.keys() == found.keys()
    exact = 0
    for name, tensor in kept.items():
        torch.testing.assert_close(found[name], tensor, rtol=2**-8, atol=0.0)
        exact += torch.equal(found[name], tensor)
    assert 0 < exact < len(kept), "small tensors stay exact"
    for one, other_one in zip(
        run.experiment.controller.controllers, other.experiment.controller.controllers, strict=True
    ):
        np.testing.assert_array_equal(one.bandits.counts, other_one.bandits.counts)
        np.testing.assert_array_equal(one.bandits.sums, other_one.bandits.sums)
    for actor_network, learner in zip(
        other.experiment.actor_networks, other.experiment.learners, strict=True
    ):
        assert all(map(torch.equal, actor_network.parameters(), learner.network.parameters())), (
            "all act with them"
        )


def test_damage_is_noticed(tmp_path):
    run = SerialRun(catch_config(run=COMPACT, model=WIDE))
    keep(run, tmp_path)
    for _ in range(30):
        run.step()
    keep(run, tmp_path)
    older, newer = sorted(tmp_path.iterdir())
    for path in damaged_variants(newer, 100, random.Random(0)):
        found, complaints = newest(tmp_path)
        assert found is not None and found.frames == int(older.name) and len(complaints) == 1, path
