"""The four ways to run a population do the same work."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import population
from benchmarks.timing import captured

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_cuda)])
def test_the_ways_agree(device, learning):
    ways = population.Ways(2, 16, device, learning)
    one_by_one, batched = ways.call("in_turn")(), ways.call("batched")()
    parts = len(one_by_one) // 2
    for i, together in enumerate(batched):
        for policy in range(2):
            same(together[policy], one_by_one[policy * parts + i])
    for way in ("streams", "as_built"):
        found = ways.call(way)()
        for own, other in zip(one_by_one, found, strict=True):
            if device == "cpu":  # the same operations
                torch.testing.assert_close(other, own)
            else:
                same(other, own)


@on_cuda
@pytest.mark.parametrize("way", population.WAYS)
def test_a_replay_does_the_work(way):
    """What the benchmark times is the work and not an empty graph."""
    ways = population.Ways(2, 16, "cuda", learning=False)
    plain, said = ways.call(way)(), []
    replay = captured(lambda: said.append(ways.call(way)()))
    for out in said[-1]:  # where the graph writes
        out.zero_()
    replay()
    torch.cuda.synchronize()
    for own, other in zip(plain, said[-1], strict=True):
        same(other, own)


def same(one: torch.Tensor, other: torch.Tensor) -> None:
    """Up to bfloat16, summed in another order."""
    assert float((one.float() - other.float()).norm() / other.float().norm()) < 0.05


def test_it_measures_all_of_them(tmp_path, capsys):
    saved = tmp_path / "x.json"
    assert population.main(["--observations", "2", "2", "--rounds", "1", "--json", str(saved)]) == 0
    found = json.loads(saved.read_text())["milliseconds"]
    assert all(found[what][way] > 0 for what in found for way in population.WAYS)
    assert "batched" in capsys.readouterr().out
    if not torch.cuda.is_available():
        with pytest.raises(SystemExit):
            population.main(["--device", "cuda"])
