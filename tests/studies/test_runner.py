"""The runner with commands that take no time, and once with the real thing."""

from __future__ import annotations

import ast
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lbc.cli import main
from lbc.errors import UserError
from lbc.reporting import RunDirectory
from lbc.studies import Study, Variant, execute, missing, plan

WRITES = """
import json, pathlib, sys
seed, frames, out = sys.argv[1:]
half = int(frames) // 2
lines = [{"frames": f, "seconds": f / 100, "score_mean": f * int(seed)} for f in (half, 2 * half)]
pathlib.Path(out, "metrics.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in lines))
"""
FAILS = "import sys; print('no such game'); sys.exit(3)"
WAITS = "import sys, time, pathlib; pathlib.Path(sys.argv[3], 'pid').write_text(''); time.sleep(600)"


def foreign(code: str, label: str = "writes") -> Variant:
    return Variant(label, command=(sys.executable, "-c", code, "{seed}", "{frames}", "{out}"))


def study(*variants: Variant) -> Study:
    return Study("quick", "Does it run?", variants)


def test_a_command_runs_once_per_seed_and_is_not_repeated(tmp_path: Path) -> None:
    runs = plan(study(foreign(WRITES)), [1, 2], tmp_path, frames=100)
    assert [run.path for run in runs] == [tmp_path / "quick" / "writes" / f"seed{k}" for k in (1, 2)]
    said = io.StringIO()
    assert execute(missing(runs), jobs=2, stream=said) == []
    assert "writes seed 2: score 200.00" in said.getvalue()
    assert json.loads((runs[1].path / "summary.json").read_text())["outcome"] == "finished"
    assert missing(runs) == []


def test_an_unfinished_run_without_a_checkpoint_is_removed_and_run_again(tmp_path: Path) -> None:
    (run,) = runs = plan(study(foreign(WRITES)), [1], tmp_path, frames=100)
    run.path.mkdir(parents=True)
    (run.path / "summary.json").write_text('{"outcome": "interrupted"}')
    (run.path / "left-over").touch()
    assert missing(runs) == runs
    assert execute(runs, stream=io.StringIO()) == []
    assert run.finished()
    assert not (run.path / "left-over").exists()


def test_a_failure_is_told_and_stops_nobody_else(tmp_path: Path) -> None:
    runs = plan(study(foreign(FAILS, "fails"), foreign(WRITES)), [1], tmp_path, frames=100)
    failures = execute(runs, jobs=1, stream=io.StringIO())
    assert failures == ["fails seed 1 failed with exit code 3: no such game"]
    assert missing(runs) == [runs[0]]


def test_a_finished_run_of_another_budget_is_neither_mixed_in_nor_lost(tmp_path: Path) -> None:
    execute(plan(study(foreign(WRITES)), [1], tmp_path, frames=100), stream=io.StringIO())
    runs = plan(study(foreign(WRITES)), [1], tmp_path, frames=200)
    with pytest.raises(UserError, match="played 100 frames, not 200"):
        missing(runs)
    assert missing(runs, "keep") == []
    assert missing(runs, "rerun") == runs
    assert (runs[0].path / "metrics.jsonl").exists()


def test_each_of_several_runs_gets_its_share_of_the_cores(tmp_path: Path) -> None:
    """And nobody waits for the others: what one gave back, the next one gets."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if len(cores) < 2:
        pytest.skip("needs two cores and a system that can share them")
    says = WRITES + "import os; pathlib.Path(out, 'cores').write_text(repr(os.sched_getaffinity(0)))\n"
    says += "pathlib.Path(out, 'threads').write_text(os.environ['OMP_NUM_THREADS'])\n"
    runs = plan(study(foreign(says)), [1, 2, 3], tmp_path, frames=100)
    assert execute(runs, jobs=2, stream=io.StringIO(), cores="split") == []
    first, second, third = (ast.literal_eval((run.path / "cores").read_text()) for run in runs)
    assert first | second == cores and not first & second and third in (first, second)
    assert (runs[0].path / "threads").read_text() == str(len(cores) // 2)


def test_several_runs_may_share_all_cores(tmp_path: Path) -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("needs a system that says which cores there are")
    says = WRITES + "import os; pathlib.Path(out, 'cores').write_text(repr(os.sched_getaffinity(0)))\n"
    runs = plan(study(foreign(says)), [1, 2], tmp_path, frames=100)
    assert execute(runs, jobs=2, stream=io.StringIO(), cores="shared") == []
    assert all(ast.literal_eval((run.path / "cores").read_text()) == os.sched_getaffinity(0) for run in runs)


def test_an_interrupt_ends_all_children(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, signal; from lbc.studies import *\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # it may be ignored here
        f"command = (sys.executable, '-c', {WAITS!r}, '', '', '{{out}}')\n"
        "variants = tuple(Variant(label, command=command) for label in '12')\n"
        "execute(plan(Study('s', '?', variants), [1], pathlib.Path(sys.argv[1]), 9), jobs=2)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.DEVNULL)
    started = [tmp_path / "s" / label / "seed1" / "pid" for label in "12"]
    deadline = time.monotonic() + 60
    while not all(path.exists() for path in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.send_signal(signal.SIGINT)
    assert parent.wait(300) != 0  # children that sleep for ten minutes were not waited for
    assert str(tmp_path) not in _command_lines()


def _command_lines() -> str:
    if not os.path.isdir("/proc"):
        pytest.skip("needs /proc")
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def test_a_preset_runs_as_the_command_line_would(tmp_path: Path) -> None:
    variant = Variant("main", "catch+random-selection", ("actor.num_envs=8", "run.reports=5"))
    (run,) = runs = plan(study(variant), [3], tmp_path, frames=1500)
    assert execute(runs, stream=io.StringIO()) == []
    assert run.finished()
    assert (run.path / "config.toml").exists()
    assert missing(runs) == []
    changed = replace(run, variant=replace(run.variant, sets=(*run.variant.sets, "learner.clip_norm=7.0")))
    with pytest.raises(UserError, match=r"learner.clip_norm was 0.5, and is 7.0 today"):
        missing([changed])


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    variant = Variant("main", "catch", ("actor.num_envs=8", "run.reports=60"))
    (run,) = runs = plan(study(variant), [1], tmp_path, frames=6_000)
    process = subprocess.Popen(
        [*run.command()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    metrics = run.path / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if metrics.exists() and len(metrics.read_bytes().splitlines()) >= 3:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 143
    played = [json.loads(line)["frames"] for line in metrics.open()]
    assert played[-1] < 6_000 and run.resumable() and missing(runs) == runs
    assert run.command()[-2:] == ["--resume", str(run.path)]
    other = replace(run, variant=replace(run.variant, sets=(*run.variant.sets, "learner.clip_norm=7.0")))
    assert not other.resumable()  # what lies there is not this run
    (run.path / "note").touch()
    assert execute(runs, stream=io.StringIO()) == []
    assert run.finished() and (run.path / "note").exists()
    after = [json.loads(line)["frames"] for line in metrics.open()]
    assert after[: len(played) - 1] == played[:-1] and after == sorted(set(after)) and after[-1] >= 6_000


def test_a_run_interrupted_before_its_first_step_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = Variant("main", "catch", ("actor.num_envs=8", "run.reports=2"))
    (run,) = plan(study(variant), [1], tmp_path, frames=300)
    with monkeypatch.context() as patch:
        patch.setattr("lbc.cli.stopping.StopRequest.requested", lambda self: True)
        main(run.command()[3:])
    assert (run.path / "checkpoints" / "000000000000").exists()
    assert not run.finished() and not run.resumable()
    assert main(["train", "--resume", str(run.path)]) == 0
    assert run.finished()


def test_a_run_that_another_process_works_on_is_left_alone(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    (run,) = runs = plan(study(foreign(WRITES)), [1], tmp_path, frames=100)
    run.path.mkdir(parents=True)
    (run.path / "metrics.jsonl").touch()
    theirs = RunDirectory(run.path)
    theirs.lock()
    with pytest.raises(UserError, match="another process is at work"):
        execute(runs, stream=io.StringIO())
    assert (run.path / "metrics.jsonl").exists()
    theirs.unlock()
    assert execute(runs, stream=io.StringIO()) == []


def test_what_cannot_run_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no preset"):
        plan(study(foreign(WRITES), Variant("typo", "cach")), [1], tmp_path, frames=10)
    with pytest.raises(UserError, match="give its budget"):
        plan(study(foreign(WRITES)), [1], tmp_path)
    with pytest.raises(UserError, match="no variant 'x'"):
        study(foreign(WRITES)).only(["x"])
    assert not list(tmp_path.iterdir())
