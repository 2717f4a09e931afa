"""The examples of the README and of docs/api.md run, and print what they say they print."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run(example: str, page: str, names: dict[str, object]) -> None:
    """Each comment behind a print is the beginning of what is printed there, up to a comma; words stand for
    numbers."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(example, page, "exec"), names)
    for promised in re.findall(r"^ *print\(.*?\)  # (.*)$", example, re.MULTILINE):
        first = promised.split(",")[0].strip()
        assert {"ones": "1.0000"}.get(first, first) in said.getvalue()


def test_there_are_examples() -> None:
    assert len(examples("README.md")) >= 3 and len(examples("docs/api.md")) >= 8


@pytest.mark.parametrize(
    "example", examples("README.md"), ids=lambda text: re.findall(r"from (lbc\S*)", text)[0]
)
def test_an_example_runs_and_prints_what_it_says(example: str) -> None:
    assert re.search(r"^print\(.*  # ", example, re.MULTILINE)
    run(example, "README.md", {})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_python_api_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program in an empty folder; a block that begins with a file's name is that file."""
    for package in ("pandas", "onnx"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names: dict[str, object] = {}
    for example in examples("docs/api.md"):
        file = re.match(r"# (\w+\.py)\n", example)
        if file:
            (tmp_path / file[1]).write_text(example)
        else:
            run(example, "docs/api.md", names)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        "first",
        "stopped",
        "pole",
        "tuned",
        "own",
    }
