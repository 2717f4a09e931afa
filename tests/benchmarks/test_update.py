"""The benchmark of an update measures a real one."""

from __future__ import annotations

import json

from benchmarks import update


def test_an_update_is_measured_and_taken_apart(tmp_path, capsys):
    saved = tmp_path / "x.json"
    arguments = ["--preset", "catch", "--rounds", "2", "--kernels", "3", "--json", str(saved)]
    assert update.main([*arguments, "--set", "actor.num_envs=8", "buffer.batch_size=4"]) == 0
    report = json.loads(saved.read_text())
    assert report["milliseconds"]["Python, one"] > 0
    longest = [row["microseconds"] for row in report["kernels"]]
    assert longest == sorted(longest, reverse=True) and longest[0] > 0
    names = {row["kernel"] for row in report["kernels"]}
    assert any("mm" in name for name in names), "an update multiplies matrices"
    assert "Python, one" in capsys.readouterr().out
    assert update.main(["--preset", "ketch"]) == 2
