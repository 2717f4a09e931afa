"""The examples of the README run, and print what they say they print."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: re.findall(r"from (lbc\S*)", text)[0])
def test_an_example_runs_and_prints_what_it_says(example: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(example, "README.md", "exec"), {})
    promised = re.findall(r"^print\(.*?\)  # (.*)$", example, re.MULTILINE)
    first = promised[0].split(",")[0].strip()
    expected = {"ones": "1.0000"}.get(first, first)
    assert expected in said.getvalue()
