"""One process, one seed, one outcome, bit for bit."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from lbc.runtime import SerialRun
from tests.builders import catch_config


def play(steps: int = 80, **sections) -> list[torch.Tensor]:
    """All actions, all probabilities, and the weights of every policy at the end."""
    run = SerialRun(catch_config(**sections))
    log = []
    original = run.actor.step

    def step():
        acted = original()
        log.extend([acted.row.action.clone(), acted.row.log_mu.clone(), acted.row.psi.clone()])
        return acted

    run.actor.step = step  # type: ignore[method-assign]
    for _ in range(steps):
        run.step()
    assert run.experiment.learners[0].updates > 5
    weights = [p.detach().clone() for x in run.experiment.learners for p in x.network.state_dict().values()]
    batch = run.last_batch
    rows = [getattr(batch, f.name) for f in fields(batch) if isinstance(getattr(batch, f.name), torch.Tensor)]
    return log + weights + rows


def identical(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_same_seed_gives_the_same_run(precision):
    first = play(run={"precision": precision})
    torch.rand(7)  # what else happened in this process must not matter
    assert identical(first, play(run={"precision": precision}))


def test_another_seed_gives_another_run():
    assert not identical(play(), play(run={"seed": 2}))


def test_another_seed_gives_other_weights_actions_and_behaviors_from_the_start():
    weights, psis = [], []
    for seed in (1, 2):
        run = SerialRun(catch_config(run={"seed": seed}))
        weights.append(run.experiment.learners[0].network.torso.last.weight.detach().clone())
        psis.append(run.actor.step().row.psi)
    assert not torch.equal(*weights)
    assert not torch.equal(*psis)


@pytest.mark.parametrize("policy", ["printed", "entropy_controlled", "scale_free"])
def test_the_other_readings_and_the_other_head_run_as_well(policy):
    sections = {"target": {"policy": policy}, "model": {"value_head": "own"}}
    assert identical(play(30, **sections), play(30, **sections))
