"""Makes ``own_code`` importable by name, as a user's own module is; two runs that several tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lbc

QUIET = {"reports": 4, "report_seconds": 1e9, "threads": 1}  # of [run]
SMALL = {"actor.num_envs": 8, "buffer.batch_size": 4}


@pytest.fixture(autouse=True, scope="session")
def own_code_on_path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield


@pytest.fixture(scope="session")
def catch(tmp_path_factory: pytest.TempPathFactory) -> lbc.TrainedRun:
    """Catch, until it plays better than chance."""
    out = tmp_path_factory.mktemp("catch") / "catch-catch-s1-20260101-000000"
    return lbc.train("catch", frames=16_000, out=out, show=False, run=QUIET)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> lbc.TrainedRun:
    """Byte images, four at once, a recurrent core; game, torso and one shaping are the user's own."""
    return lbc.train(
        "catch",
        env="own_code:Lights",
        frames=400,
        out=tmp_path_factory.mktemp("own") / "run",
        show=False,
        run=QUIET,
        model={"torso": "own_code:torso", "lstm_units": 8},
        population={"shapings": ["sqrt", "own_code:halved", "tanh"]},
        **SMALL,
    )
