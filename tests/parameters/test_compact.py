"""The compact form: bfloat16 comes back exactly, everything else untouched, nonsense is refused."""

from __future__ import annotations

import zlib

import pytest
import torch

from lbc.errors import UserError
from lbc.parameters.compact import pack, unpack

WEIGHT, MOMENT = "run.learners.2.network.torso.weight", "run.learners.0.optimizer.exp_avg_sq.3"


def test_learned_tensors_come_back_in_bfloat16_and_the_rest_as_it_was():
    generator = torch.Generator().manual_seed(0)
    tensors = {
        WEIGHT: torch.randn(40, 50, generator=generator) * 0.05,
        MOMENT: torch.randn(3000, generator=generator).exp() * 1e-9,
        "run.learners.0.network.bias": torch.randn(50, generator=generator),
        "run.learners.0.optimizer.step.3": torch.tensor(7.0),
        "run.controller.sums": torch.randn(2000, generator=generator, dtype=torch.float64),
        "run.learners.0.network.wide": torch.randn(2000, generator=generator, dtype=torch.float64),
    }
    packed, shapes = pack(tensors)
    assert set(shapes) == {WEIGHT, MOMENT}
    assert packed[WEIGHT].dtype == torch.uint8 and packed[WEIGHT].nbytes < 0.45 * tensors[WEIGHT].nbytes
    found = unpack(packed, shapes)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        expected = tensor.to(torch.bfloat16).float() if name in shapes else tensor
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], expected), name


def test_extremes_survive():
    values = torch.tensor([0.0, -0.0, 1e-38, 1e38, float("inf"), -float("inf")]).repeat(200)
    packed, shapes = pack({WEIGHT: values})
    assert torch.equal(unpack(packed, shapes)[WEIGHT], values.to(torch.bfloat16).float())


@pytest.mark.parametrize("shape", [[3000], [1], [0], [-5], [10**9], [10**6, 10**6]])
def test_sizes_that_were_not_packed_are_refused(shape):
    packed, _ = pack({WEIGHT: torch.randn(2000)})
    with pytest.raises(UserError, match="packed tensor"):
        unpack(packed, {WEIGHT: shape} if shape != [1] else {WEIGHT: [2001]})


def test_a_bomb_inflates_to_no_more_than_was_announced():
    bomb = torch.frombuffer(bytearray(zlib.compress(bytes(50_000_000))), dtype=torch.uint8)
    assert unpack({WEIGHT: bomb}, {WEIGHT: [1000]})[WEIGHT].shape == (1000,)
    with pytest.raises(UserError, match="cannot be read"):
        unpack({WEIGHT: torch.arange(200).to(torch.uint8)}, {WEIGHT: [1000]})
