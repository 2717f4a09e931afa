"""The scaling table measures real runs; its law is a least-squares line."""

from __future__ import annotations

import json

import pytest

from benchmarks import scaling


def test_the_law_is_found_again():
    rows = [{"policies": n, "frames_per_second": 1.0 / (2e-4 + 5e-5 * n)} for n in (1, 2, 3, 5, 8)]
    fitted = scaling.law(rows)
    assert fitted["a"] == pytest.approx(2e-4) and fitted["b"] == pytest.approx(5e-5)
    assert fitted["explained"] == pytest.approx(1.0)


def test_populations_of_any_size_are_valid(tmp_path, capsys):
    arguments = ["--preset", "catch", "--policies", "1", "4", "2", "--seconds", "0.1", "--base-envs", "4"]
    values = ["--set", "run.threads=1", "buffer.batch_size=4"]
    assert scaling.main([*arguments, *values, "--json", str(tmp_path / "x.json")]) == 0
    report = json.loads((tmp_path / "x.json").read_text())
    assert [row["policies"] for row in report["rows"]["policies"]] == [1, 4, 2]
    assert all(row["frames_per_second"] > 0 for row in report["rows"]["policies"])
    assert "microseconds per frame" in capsys.readouterr().out
    assert scaling.main(["--preset", "ketch"]) == 2
