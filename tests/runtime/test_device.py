"""In which numbers a run computes: what was asked for, or what this device is faster in."""

import pytest
import torch

from lbc.runtime.device import has_bfloat16, precision
from tests.builders import catch_config

CPU = torch.device("cpu")


@pytest.fixture
def native(monkeypatch):
    """Makes this CPU one that computes in bfloat16, or not."""

    def has(it: bool) -> None:
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: it, raising=False)

    return has


def chosen(torso: str, wanted: str = "auto"):
    return precision(catch_config(model={"torso": torso}, run={"precision": wanted}), CPU)


@pytest.mark.parametrize(
    "torso, mixed",
    [
        ("nature", True),
        ("conv", True),
        ("impala", True),
        ("residual", True),
        ("minatar", False),
        ("mlp", False),
    ],
)
def test_a_cpu_with_bfloat16_uses_it_where_convolutions_are_the_work(native, torso, mixed):
    native(True)
    assert chosen(torso) == (torch.float32, mixed)
    native(False)
    assert chosen(torso) == (torch.float32, False)


@pytest.mark.parametrize("it", [True, False])
def test_who_asks_for_numbers_gets_them(native, it):
    native(it)
    assert chosen("nature", "float32") == (torch.float32, False)
    assert chosen("mlp", "bfloat16") == (torch.float32, True)
    assert chosen("nature", "float64") == (torch.float64, False)


def test_a_torch_that_does_not_tell_is_not_asked(monkeypatch):
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert not has_bfloat16(CPU)
    assert not has_bfloat16(torch.device("meta"))
