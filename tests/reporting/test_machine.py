"""What a run notes of its command, its code and its machine."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import torch

from lbc.reporting.machine import machine

ROOT = Path(__file__).resolve().parents[2]


def test_command_commit_and_versions(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/lbc", "train", "catch", "--out", "my runs/a"])
    found = machine()
    assert shlex.split(found["command"]) == ["lbc", "train", "catch", "--out", "my runs/a"]
    assert found["torch"] == torch.__version__ and found["usable_cores"] >= 1
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if head.returncode == 0:
        assert head.stdout.startswith(found["commit"].rstrip("+"))
    else:
        assert found["commit"] is None
