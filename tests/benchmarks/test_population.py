"""The four ways to run a population do the same work."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import population


@pytest.mark.parametrize("learning", [False, True])
def test_the_ways_agree(learning):
    ways = population.Ways(2, 16, "cpu", learning)
    one_by_one, batched = ways.call("in_turn")(), ways.call("batched")()
    for own, built in zip(one_by_one, ways.call("as_built")(), strict=True):
        torch.testing.assert_close(built, own)
    parts = len(one_by_one) // 2
    for i, together in enumerate(batched):
        for policy in range(2):
            alone = one_by_one[policy * parts + i].float()
            difference = (together[policy].float() - alone).norm() / alone.norm()
            assert float(difference) < 0.05, i  # bfloat16, summed in another order


def test_it_measures_all_of_them(tmp_path, capsys):
    saved = tmp_path / "x.json"
    assert population.main(["--observations", "2", "2", "--rounds", "1", "--json", str(saved)]) == 0
    found = json.loads(saved.read_text())["milliseconds"]
    assert all(found[what][way] > 0 for what in found for way in population.WAYS)
    assert "batched" in capsys.readouterr().out
    if not torch.cuda.is_available():
        with pytest.raises(SystemExit):
            population.main(["--device", "cuda"])
