import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbc.cards import available, from_toml, resolve, to_toml
from lbc.cards.values import section_fields
from lbc.config import Config
from lbc.errors import UserError

_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(0, 10**12),
    float: st.floats(0, 1e9, allow_nan=False) | st.floats(0, 1),
    str: st.text(st.characters(codec="utf-8"), max_size=12),
    tuple[float, ...]: st.lists(st.floats(0, 1), min_size=3, max_size=3).map(tuple),
    tuple[int, ...]: st.lists(st.integers(0, 2), max_size=5).map(tuple),
    tuple[str, ...]: st.lists(st.text(st.characters(codec="utf-8")), min_size=3, max_size=3).map(tuple),
}
_FIELDS = [(section, key, kind) for section, keys in section_fields().items() for key, kind in keys.items()]


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Any change of any field that the config accepts."""
    config = Config()
    for section, key, kind in draw(st.lists(st.sampled_from(_FIELDS), max_size=12)):
        record = getattr(config, section)
        value = draw(_VALUES[kind])
        try:
            config = dataclasses.replace(config, **{section: dataclasses.replace(record, **{key: value})})
        except UserError:
            continue
    return config


@settings(max_examples=150, deadline=None)
@given(configs())
def test_round_trip_is_exact(config: Config) -> None:
    assert from_toml(to_toml(config)) == config


@pytest.mark.parametrize("name", [card.name for card in available() if card.kind == "preset"])
def test_a_runs_config_file_is_a_card_for_the_same_run(name: str, tmp_path) -> None:
    config = resolve(name, ["run.seed=7"])
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    assert resolve(str(path)) == config


def test_the_text_leaves_nothing_out() -> None:
    text = to_toml(Config())
    for section, key, _ in _FIELDS:
        assert f"\n{key} = " in text.partition(f"[{section}]")[2].partition("\n[")[0]
