"""Run directories as training leaves them, in miniature."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lbc.cards import resolve, to_toml


def write_run(
    path: Path,
    scores: Sequence[float | None],
    game: str = "ALE/Pong-v5",
    seed: int = 1,
    settings: Sequence[str] = (),
    key: str = "score_mean",
) -> Path:
    """A report every 1000 frames."""
    path.mkdir(parents=True)
    config = resolve("atari-laptop", tuple(settings), env=game, seed=seed)
    (path / "config.toml").write_text(to_toml(config))
    reports = [{"frames": 1000 * (i + 1), "seconds": 1.0, key: score} for i, score in enumerate(scores)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports))
    return path
