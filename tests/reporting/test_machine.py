"""What a run notes of its command, its code and its machine."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lbc.reporting.machine import _archived, machine

ROOT = Path(__file__).resolve().parents[2]


def test_command_commit_and_versions(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/lbc", "train", "catch", "--out", "my runs/a"])
    found = machine()
    assert shlex.split(found["command"]) == ["lbc", "train", "catch", "--out", "my runs/a"]
    assert found["torch"] == torch.__version__ and found["usable_cores"] >= 1
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if head.returncode == 0:
        assert head.stdout.startswith(found["commit"].rstrip("+"))


def test_an_archive_of_the_code_knows_its_commit(tmp_path):
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        pytest.skip("not a checkout")
    with (tmp_path / "code.tar").open("wb") as file:
        subprocess.run([*git, "archive", "HEAD", "lbc/reporting"], stdout=file, check=True)
    subprocess.run(["tar", "-xf", "code.tar"], cwd=tmp_path, check=True)
    mark = tmp_path / "lbc" / "reporting" / "archived.txt"
    assert _archived(mark) == head.stdout[:12]
    mark.write_text(mark.read_text().strip() + "+\n")  # by whoever changed it
    assert _archived(mark) == head.stdout[:12] + "+"
    assert _archived(ROOT / "lbc" / "reporting" / "archived.txt") is None  # a checkout asks git
    assert _archived(tmp_path / "nowhere.txt") is None
