"""State as plain data: everything comes back as it was, and nothing else can."""

from __future__ import annotations

import json
from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lbc.errors import UserError
from lbc.parameters.snapshot import give, take


class Inner:
    SAVED = ("count", "table")

    def __init__(self) -> None:
        self.count, self.table, self.unsaved = 0, np.zeros((2, 3)), "mine"


class Outer:
    SAVED = ("inner", "rng", "old_rng", "torch_rng", "scores", "weights", "names")

    def __init__(self, seed: int) -> None:
        self.inner = Inner()
        self.rng = np.random.default_rng(seed)
        self.old_rng = np.random.RandomState(seed)
        self.torch_rng = torch.Generator().manual_seed(seed)
        self.scores: deque[float] = deque(maxlen=3)
        self.weights = {"w": torch.zeros(2, 2, dtype=torch.bfloat16), 3: torch.arange(4)}
        self.names: list[object] = []

    def live(self) -> list[float]:
        """Moves everything on, and says what it saw."""
        self.inner.count += 1
        self.inner.table += self.rng.random((2, 3))
        self.scores.append(float(self.old_rng.rand()))
        self.weights["w"] += torch.rand(2, 2, generator=self.torch_rng).to(torch.bfloat16)
        self.names.append((self.inner.count, None, f"n{self.inner.count}"))
        return [*self.inner.table.flatten(), *self.scores, *self.weights["w"].flatten().tolist()]


def through_a_file(value, tmp_path):
    from safetensors.torch import load_file, save_file

    tensors: dict[str, torch.Tensor] = {}
    data = take(value, tensors)
    save_file(tensors, tmp_path / "x.safetensors")
    return json.loads(json.dumps(data)), load_file(tmp_path / "x.safetensors")


def test_a_life_goes_on_as_if_nothing_had_happened(tmp_path):
    one, other = Outer(1), Outer(2)
    for _ in range(5):
        one.live()
    for _ in range(2):
        other.live()
    table, weight = other.inner.table, other.weights["w"]
    assert give(other, *through_a_file(one, tmp_path)) is other
    assert other.inner.table is table and other.weights["w"] is weight, "filled in place"
    assert other.inner.unsaved == "mine" and other.scores.maxlen == 3
    for _ in range(5):
        assert one.live() == other.live()
    assert one.names == other.names


def test_a_snapshot_does_not_move():
    one, tensors = Outer(1), {}
    one.live()
    data = take(one, tensors)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    one.live()
    assert all(torch.equal(before[name], tensors[name]) for name in before)
    assert json.dumps(data) == json.dumps(take(give(Outer(3), data, tensors), {}))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_values_come_back(value):
    data = json.loads(json.dumps(take(value, {})))
    assert give(None, data, {}) == value


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "uint16", "uint32", "int64", "uint64", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_arrays_of_every_kind_come_back(dtype, shape, tmp_path):
    value = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    if dtype.startswith("u") and value.size:
        value.flat[0] = np.iinfo(dtype).max
    found = give(None, *through_a_file(value, tmp_path))
    assert found.dtype == value.dtype and found.shape == value.shape
    np.testing.assert_array_equal(found, value)


def test_what_has_no_plain_form_is_refused():
    for value in (object(), {1, 2}, np.array([object()]), lambda: None):
        with pytest.raises(TypeError, match="no plain form"):
            take(value, {})


@pytest.mark.parametrize(
    "data",
    [
        {"object": {"count": 1}},
        {"object": {"count": 1, "table": 2, "__class__": 3}},
        {"os.system": "true"},
        {"tensor": "missing"},
        {"scalar": 1, "dtype": "no such type"},
        {"dict": [1, 2]},
        {"generator": {"dict": []}},
        [],
        {},
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(data):
    with pytest.raises(UserError, match="does not fit this run"):
        give(Inner(), data, {})


def test_nothing_is_created_from_a_file():
    """An object can only be filled in where one is already."""
    tensors: dict[str, torch.Tensor] = {}
    data = take(Inner(), tensors)
    with pytest.raises(UserError):
        give(None, data, tensors)
