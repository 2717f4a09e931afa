"""MinAtar Breakout and Asterix: LBC-BM against Stable-Baselines3's PPO, both curves in one figure.

    python benchmarks/minatar_vs_ppo.py                 # 3 seeds of each, 1M frames: hours on two cores
    python benchmarks/minatar_vs_ppo.py --frames 20000 --seeds 1 --out /tmp/smoke --figure /tmp/smoke.png

PPO lives in a virtual environment of its own, which the first call sets up (`VENV`), so that its
versions bind nobody.  Both sides play the very same games; see `ppo_yardstick.py` for PPO's settings.
PPO's learning rate was chosen on seeds 1 and 2, so the seeds here begin with 3, for both.
(A file named minatar.py here would hide the package of that name from every script beside it.)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cli.train import parse_frames
from lbc.errors import UserError
from lbc.studies import Study, Variant, conduct, plan
from lbc.studies.minatar import GAMES
from lbc.studies.minatar import study as ours

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venvs" / "sb3"
FIRST_SEED = 3
# torch first, at the version that LBC is tested with: the comparison is of algorithms, not of releases.
PACKAGES = (("torch", "numpy"), ("stable-baselines3==2.9.2", "gymnasium", "ale-py", "MinAtar"))


def yardstick_python() -> Path:
    """The interpreter that has Stable-Baselines3; sets up its virtual environment where it is missing."""
    python, stamp = VENV / "bin" / "python", VENV / ".installed"
    works = python.exists() and _call(python, "-c", "import stable_baselines3, minatar, ale_py") == 0
    if works or stamp.exists():
        return python
    print(f"setting up {VENV} for Stable-Baselines3", flush=True)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    steps = [(sys.executable, "-m", "venv", VENV)]
    steps += [(*pip, "-c", ROOT / "constraints.txt", *packages) for packages in PACKAGES]
    for step in steps:
        if _call(*step, quiet=False):
            raise UserError(f"'{VENV}' could not be set up; this failed: {' '.join(map(str, step))}")
    stamp.touch()
    return python


def _call(*command: str | Path, quiet: bool = True) -> int:
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run([str(part) for part in command], stdout=output, stderr=output).returncode


def study(python: Path) -> Study:
    budget = ("--frames", "{frames}", "--seed", "{seed}", "--out", "{out}")
    ppo = tuple(
        Variant(
            "PPO (Stable-Baselines3)",
            task=f"MinAtar {game}",
            command=(
                str(python),
                str(ROOT / "benchmarks" / "ppo_yardstick.py"),
                "minatar",
                *("--env", f"MinAtar/{game}"),
                *budget,
            ),
        )
        for game in GAMES
    )
    question = "Does LBC-BM reach PPO's score at equal frames?"
    return replace(ours(), name="minatar_vs_ppo", question=question, variants=ours().variants + ppo)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="LBC-BM and PPO on MinAtar Breakout and Asterix.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--frames", default="1M", help="of every run")
    parser.add_argument("--jobs", type=int, help="runs at a time; by default one per usable core")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    parser.add_argument("--figure", type=Path, default=ROOT / "docs" / "minatar_vs_ppo.png")
    parser.add_argument("--stale", choices=["refuse", "keep", "rerun"], default="refuse")
    options = parser.parse_args(arguments)
    try:
        found = study(yardstick_python())
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
        runs = plan(found, seeds, options.out, parse_frames(options.frames))
        return conduct(found, runs, options.figure, options.jobs, options.stale)
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        print(f"minatar_vs_ppo: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
