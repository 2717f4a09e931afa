"""What the benchmarks of single calls share: their time, and their replay as a CUDA graph."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

WARM_UP = 3

Call = Callable[[], object]


def captured(run: Call) -> Call:
    """The same work as the replay of a CUDA graph; RuntimeError if it cannot be captured."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()

    def replay() -> object:
        graph.replay()
        return kept

    return replay


def milliseconds(run: Call, on_cuda: bool) -> float:
    """Of one call, by the device's own clock if it works there."""
    if on_cuda:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)
    begun = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - begun)


def median(run: Call, rounds: int, on_cuda: bool) -> float:
    """Milliseconds, after a warm-up."""
    return statistics.median([milliseconds(run, on_cuda) for _ in range(WARM_UP + rounds)][WARM_UP:])
