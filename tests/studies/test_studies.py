import json
from pathlib import Path

import pytest

from lbc.cards import resolve
from lbc.cli import main as lbc
from lbc.studies.catalogue import STUDIES
from lbc.studies.ladder import CLIMB


def main(arguments: list[str]) -> int:
    return lbc(["study", *arguments])


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_variant_resolves_and_differs_from_the_others(name: str) -> None:
    study = STUDIES[name]()
    assert study.name == name
    configs = [resolve(variant.preset, variant.sets) for variant in study.variants]
    assert len({repr(config) for config in configs}) == len(configs)


def test_the_ladder_leads_from_impala_to_the_complete_algorithm() -> None:
    variants = {variant.label: variant for variant in STUDIES["ladder"]().variants}
    second, last = variants[CLIMB[1][0]], variants[CLIMB[-1][0]]
    assert resolve(second.preset, second.sets) == resolve("short-pong+impala")
    assert resolve(last.preset, last.sets) == resolve("short-pong+decoupled")


@pytest.mark.parametrize("overlay", ["printed", "entropy-controlled", "scale-free", "decoupled"])
def test_a_readings_card_has_twenty_regions_of_tau(overlay: str) -> None:
    from lbc.behavior import build_space

    config = resolve(f"catch+{overlay}")
    assert config.target.policy == overlay.replace("-", "_")
    assert build_space(config.behavior, 3).regions == (20, 20, 20, 10, 10, 10)


def test_the_command_runs_draws_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other" / "seed1"
    other.mkdir(parents=True)
    (other / "metrics.jsonl").write_text(json.dumps({"frames": 900, "seconds": 1, "score_mean": 0.25}) + "\n")
    arguments = [
        "toy",
        "--only",
        "random selection",
        "--seeds",
        "1",
        "--frames",
        "1000",
        "--out",
        str(tmp_path),
    ]
    arguments += ["--set", "actor.num_envs=8", "--also", f"other={other.parent}/*", "--jobs", "2"]
    assert main([*arguments, "--figure", str(tmp_path / "x.png")]) == 0
    text = capsys.readouterr().out
    assert "2 runs, 0 done already" in text
    assert "| other | 0.25 |" in text
    assert (tmp_path / "x.png").exists()
    assert "### Catch" in (tmp_path / "toy" / "toy.md").read_text()
    assert main(arguments) == 0
    assert "2 runs, 2 done already" in capsys.readouterr().out
    more = [*arguments, "--draw"]
    more[more.index("--seeds") + 1] = "1-2"
    assert main(more) == 0  # runs nothing
    assert "2 of 4 runs are missing or unfinished and left out." in capsys.readouterr().out
    assert not (tmp_path / "toy" / "catch-random-selection" / "seed2").exists()


def test_a_study_can_be_narrowed_to_a_task() -> None:
    readings = STUDIES["readings"]()
    catch = readings.only(tasks=["Catch"])
    assert {variant.task for variant in catch.variants} == {"Catch"} and len(catch.variants) == 4
    assert len(readings.only(["(a) printed"], ["Catch"]).variants) == 1
    assert readings.only() == readings


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toy", "--only", "nobody", "--out", str(tmp_path)]) == 2
    assert main(["toy", "--task", "nothing", "--out", str(tmp_path)]) == 2
    assert main(["toy", "--set", "actor.nm_envs=8", "--out", str(tmp_path)]) == 2
    assert main(["toy", "--also", "x=nowhere/*", "--out", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 4
