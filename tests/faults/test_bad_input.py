"""Whatever is typed or written into a card: a run, or one sentence and code 2; never a traceback.

All in all 1,050 cases, the same ones every time.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lbc.cards import resolve
from lbc.cards.values import section_fields
from lbc.cli import main
from lbc.errors import TrainingError, UserError
from lbc.runtime import SerialRun

FIELDS = {
    f"{section}.{key}": kind for section, keys in section_fields().items() for key, kind in keys.items()
}
PRESETS = [
    "catch",
    "deepsea",
    "minatar",
    "atari",
    "catch+no-ucb",
    "no-ucb",
    "catch+catch",
    "small",
    "nothing",
]
OPTIONS = ["--env", "--frames", "--minutes", "--out", "--seed", "--runtime", "--resume", "--set", "--json"]
FILES = [
    *("here", "here/config.toml", "a/b", "x" * 5000, "a\0b", "/dev/null", "/dev/null/x", "/proc/self/x"),
    *("bad.toml", "bad", "folder.toml", "odd"),
]
CHOICES = [
    *(
        "catch",
        "deepsea",
        "CartPole-v1",
        "MinAtar/Breakout",
        "mlp",
        "conv",
        "minatar",
        "nature",
        "residual",
        "impala",
    ),
    *("own", "tied", "torch", "epsilon_greedy", "selection", "linear", "simplex", "ucb", "random", "rule"),
    *("environment", "shared", "start", "end", "omega", "printed", "entropy_controlled", "decoupled"),
    *("policy", "constant", "float64", "bfloat16", "cpu", "cuda", "meta", "no such thing"),
]

numbers = st.one_of(
    st.integers(-3, 100).map(str),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ["1e400", "-1e400", "1e999999999", "0x10", "1_000", "9" * 5000, "10" * 200, "2e6", "1e18"]
    ),
)
words = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["", "\0", "a\nb", "-", "--", "-1", "=", "+", "true", "[]", "[1, 'a']", "\ud800", "[" * 3000]
    ),
    st.sampled_from(["serial", "local", "no:such", "a.b:c", "ALE/Pong-v5", "catch", *FILES]),
    numbers,
)
wishes = st.tuples(st.one_of(st.sampled_from(list(FIELDS)), words), words).map("=".join)

SHARED = [HealthCheck.function_scoped_fixture]  # all cases in one folder: none may harm the next


def spelled(command: str, preset: str, options: list[tuple[str, str]], changes: list[str]) -> list[str]:
    listed = [word for option in options for word in option]
    return [command, preset, *listed, *(word for change in changes for word in ("--set", change))]


command_lines = st.one_of(
    st.lists(st.one_of(words, st.sampled_from([*OPTIONS, "train", "bench"])), max_size=4),
    st.builds(
        spelled,
        st.sampled_from(["train", "bench"]),
        st.one_of(st.sampled_from(PRESETS), words),
        st.lists(st.tuples(st.sampled_from(OPTIONS), words), max_size=3),
        st.lists(wishes, max_size=2),
    ),
    st.builds(spelled, st.just("train"), st.sampled_from(PRESETS), st.just([]), st.lists(wishes, min_size=1)),
)


@pytest.fixture
def before_training(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Input alone: a valid one gets as far as the door of training, in an empty folder."""
    monkeypatch.setattr("lbc.runtime.loop.train", lambda *_, **__: {})
    monkeypatch.setattr("lbc.cli.bench.Bench.run", lambda self: 0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("here").mkdir()
        Path("here/config.toml").write_text("[run]\nseed = 1\n")
        Path("bad").mkdir()
        Path("folder.toml").mkdir()
        Path("odd/config.toml").mkdir(parents=True)
        for name in ("bad.toml", "bad/config.toml"):
            Path(name).write_bytes(b"# \xff\xfe\n[run]\nseed = 1\n")
        yield


def assert_success_or_one_sentence(argv: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as end:  # --help
            code = int(end.code or 0)
    said = err.getvalue()
    assert code in (0, 2)
    if code == 0:
        assert said == ""
    else:
        assert said.startswith("lbc: ") and said.endswith("\n") and len(said.splitlines()) == 1
        assert said.encode()


@pytest.mark.parametrize("path", FILES)
def test_paths(before_training: None, path: str) -> None:
    for words in (["catch", "--out", path], ["--resume", path], [path], [f"{path}.toml"]):
        assert_success_or_one_sentence(["train", *words])
    assert_success_or_one_sentence(["train", "catch", "--env", path])
    if not Path(path[:99]).is_dir():
        assert_success_or_one_sentence(["doctor", "--path", path])


@settings(max_examples=500, suppress_health_check=SHARED)
@given(command_lines)
def test_command_lines(before_training: None, argv: list[str]) -> None:
    assert_success_or_one_sentence(argv)


plain = st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=5))
values = st.one_of(
    plain, st.lists(plain, max_size=3), st.dictionaries(st.sampled_from("ab"), plain, max_size=2)
)


def toml(value: object) -> str:
    """As TOML, or nearly: what a hurried hand might write."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    return repr(value)


def written(tables: list[tuple[str, object]], heading: str) -> bytes:
    lines = [f"{key} = {toml(value)}" for key, value in tables]
    return "\n".join([heading, *lines]).encode("utf-8", "surrogatepass")


cards = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.builds(
        written,
        st.lists(st.tuples(st.sampled_from(list(FIELDS)), values), max_size=4),
        st.sampled_from(
            ["", "kind = 'preset'", "kind = 3", "base = 'small'", "base = '../x'", "base = [1]", "run = 2"]
        ),
    ),
)


@settings(max_examples=400, suppress_health_check=SHARED)
@given(cards)
def test_cards(before_training: None, card: bytes) -> None:
    Path("mine.toml").write_bytes(card)
    assert_success_or_one_sentence(["train", "mine.toml"])


def value_of(kind: object) -> st.SearchStrategy[str]:
    """Values of a field's type that are as often sensible as not, and never large."""
    if kind is bool:
        return st.sampled_from(["true", "false"])
    if kind is int:
        return st.sampled_from(["0", "1", "2", "3", "5", "16", "-1"])
    if kind is float:
        return st.sampled_from(["0.0", "0.1", "0.5", "1.0", "3.0", "1e-9", "1e9", "-1.0", "inf", "nan"])
    if kind is str:
        return st.sampled_from(CHOICES)
    return st.sampled_from(
        ["[]", "[0]", "[0.9]", "[0.9, 0.5]", "[1, 0]", "['sqrt']", "['log', 'tanh']", "[7]"]
    )


changes = st.lists(
    st.sampled_from(sorted(FIELDS.keys() - {"run.threads"})).flatmap(
        lambda key: value_of(FIELDS[key]).map(lambda v: f"{key}={v}")
    ),
    min_size=1,
    max_size=4,
)
SMALL = [
    *("model.torso_units=4", "model.head_units=4", "model.lstm_units=4", "actor.num_envs=2"),
    *("buffer.sequence_length=4", "buffer.batch_size=2", "run.frames=24", "run.device=cpu"),
]


@settings(max_examples=150)
@given(changes)
def test_configurations_that_train(changes: list[str]) -> None:
    """What a config accepts can be trained with, or is refused or fails with a sentence."""
    with contextlib.suppress(UserError, TrainingError):
        run = SerialRun(resolve("catch", [*SMALL, *changes]))
        for _ in range(8):
            run.step()
        run.report()


def test_a_card_that_is_based_on_itself(before_training: None) -> None:
    Path("mine.toml").write_text(f"base = '{Path.cwd() / 'mine'}'")
    assert_success_or_one_sentence(["train", "mine.toml"])
