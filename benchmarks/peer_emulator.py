"""The bare emulator: random actions in as many copies of a game as keep every usable core busy.

    python benchmarks/peer_emulator.py --env ALE/Pong-v5

Prints ``frames N`` about twice a second, until it is stopped.  Nothing learns, so no peer can be faster.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ale_py.vector_env import AtariVectorEnv

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.environments.atari import PREFIX, games
from lbc.environments.cores import usable_cores

COPIES = 16  # per core
FRAME_SKIP = 4


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Random actions in the bare emulator.")
    parser.add_argument("--env", default="ALE/Pong-v5")
    options = parser.parse_args(arguments)
    cores = usable_cores()
    rom = games()[options.env.removeprefix(PREFIX).removesuffix("-v5")]
    emulators: Any = AtariVectorEnv(rom, COPIES * cores, num_threads=cores, frameskip=FRAME_SKIP)
    emulators.reset(seed=1)
    random = np.random.default_rng(1)
    num_actions = len(emulators.ale.get_action_set())
    frames, reported = 0, time.monotonic()
    while True:
        emulators.step(random.integers(num_actions, size=emulators.num_envs))
        frames += FRAME_SKIP * emulators.num_envs
        if time.monotonic() - reported > 0.5:
            reported = time.monotonic()
            print(f"frames {frames}", flush=True)


if __name__ == "__main__":
    main()
