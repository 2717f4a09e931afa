"""In which numbers a run computes: what was asked for, or what suits this device."""

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


def chosen(torso: str, wanted: str = "auto", device: torch.device = CPU):
    return precision(catch_config(model={"torso": torso}, run={"precision": wanted}), device)


@pytest.mark.parametrize("it", [True, False])
@pytest.mark.parametrize("torso", ["nature", "mlp"])
def test_a_cpu_computes_in_float32_unless_told_otherwise(native, torso, it):
    native(it)
    assert chosen(torso) == (torch.float32, False)


def test_a_gpu_with_bfloat16_uses_it(monkeypatch):
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda _: None)
    for it in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, it=it: it)
        assert chosen("nature", device=torch.device("cuda")) == (torch.float32, it)


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
