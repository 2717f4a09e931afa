"""`lbc doctor` looks at this very machine."""

from __future__ import annotations

import importlib.util
import tomllib
from collections import namedtuple
from pathlib import Path

from lbc.cli import doctor, main
from lbc.cli.doctor import GOOD, MISSING, POOR, examine


def by_name(findings):
    return {finding.what: finding for finding in findings}


def test_this_machine_can_train(tmp_path, capsys):
    assert main(["doctor", "--path", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = by_name(examine(tmp_path))
    assert found["torch"].state == GOOD and found["ale-py"].state == GOOD and "games" in found["ale-py"].text
    assert {"python", "device", "cores", "disk", "disk speed"} <= found.keys()
    assert all(line.split()[0] in (GOOD, POOR, MISSING) for line in lines)
    assert not list(tmp_path.iterdir()), "nothing is left"


def test_what_is_missing_comes_with_the_command_that_brings_it(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "lbc.cli.doctor.importlib.util.find_spec", lambda name: None if name == "minatar" else find(name)
    )
    finding = by_name(examine(tmp_path))["minatar"]
    assert finding.state == POOR and "pip install 'lbc[minatar]'" in finding.text


def test_a_small_machine_is_told_so(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage(10, 9, 2**20))
    found = by_name(examine(tmp_path))
    assert found["disk"].state == POOR
    if "shared memory" in found:
        assert "--shm-size" in found["shared memory"].text


def test_a_disk_that_cannot_be_written_fails(tmp_path, monkeypatch, capsys):
    def refuse(**options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(doctor.tempfile, "NamedTemporaryFile", refuse)
    assert main(["doctor", "--path", str(tmp_path)]) == 1
    assert "Read-only file system" in capsys.readouterr().out


def test_every_extra_is_looked_for() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    extras = set(project["project"]["optional-dependencies"]) - {"dev", "browser"}
    assert extras == {extra for extra, _ in doctor._OPTIONAL.values() if extra}
