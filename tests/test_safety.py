"""Nothing that is read can execute anything: no pickle, no eval, no archive that could leave its folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "lbc"
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "yaml",
    "tarfile",
    "zipfile",
}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "torch.load",
    "np.load",
    "numpy.load",
    "shutil.unpack_archive",
}


def dangers(source: str) -> list[str]:
    """Imports and calls that could execute what a file says, or write where an archive says."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS:
            found.append(ast.unparse(node.func))
    return found


def test_nothing_is_unpickled_or_evaluated() -> None:
    found = {str(path.relative_to(ROOT)): dangers(path.read_text()) for path in ROOT.rglob("*.py")}
    assert not {path: what for path, what in found.items() if what}
    assert len(found) > 50


@pytest.mark.parametrize(
    "source",
    [
        *("import pickle", "from dill import loads", "import torch\ntorch.load('x')", "eval('1')"),
        *("import tarfile", "import numpy as np\nnp.load('x', allow_pickle=True)", "exec(text)"),
    ],
)
def test_the_search_would_find_it(source: str) -> None:
    assert dangers(source)


def test_methods_of_that_name_are_harmless() -> None:
    assert not dangers("network.eval()\nre.compile('x')\ntorch.compile(f)")
