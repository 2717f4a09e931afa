"""How fast is the recurrent core?  LSTMs of one size, side by side.

    python benchmarks/lstm.py [--device cpu|cuda] [--threads N] [--rounds N] [--json FILE]

ours      `lbc.models.core.RecurrentCore`, with resets inside the sequences
steps     the same, step by step, where a GPU could play whole sequences as one kernel
nn.LSTM   torch's own, without resets: it has none (oneDNN on a CPU, cuDNN on a GPU)
literal   the same LSTM with resets as a plain loop under autograd

Forward runs without gradient, as in an actor or a burn-in; forward + backward asks for the gradients of the
input and of all parameters.  bfloat16 means autocast over float32 parameters.  On a GPU everything is
measured twice, launched from Python and replayed from a CUDA graph; "-" is what could not be captured.
The contenders take turns in every round; a time is the median of the rounds.  What counts is the
ratio in the last column: below 1, ours is the faster one although it resets.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.timing import WARM_UP, Call, captured, milliseconds
from lbc.models import fused, sequence
from lbc.models.core import RecurrentCore
from tests.oracles.lstm import literal

SIZES = ((80, 64, 531, 256), (120, 64, 531, 256))  # T, B, inputs, units
RESETS = 0.01  # share of the steps that begin an episode
OURS, STEPS, TORCH, LITERAL = NAMES = "ours", "steps", "nn.LSTM", "literal"
HEADINGS = ("T x B x inputs x units", "type", "pass", "launched by")


@dataclass(frozen=True)
class Result:
    size: tuple[int, ...]  # T, B, inputs, units
    dtype: str
    part: str  # forward, or forward + backward
    launch: str  # Python, or a CUDA graph
    milliseconds: dict[str, float | None]  # None: could not be captured

    @property
    def ratio(self) -> float | None:
        ours, torchs = self.milliseconds[OURS], self.milliseconds[TORCH]
        return ours / torchs if ours and torchs else None


def step_by_step(core: RecurrentCore, x: Tensor, first: Tensor, state: Tensor) -> Tensor:
    gates, weight = core.input(x), core.hidden.weight
    if torch.is_grad_enabled():
        return fused.Steps.apply(gates, weight, first, state)[0]
    return fused.steps(gates.to(state.dtype), weight, first, state)[0]


def contenders(size: tuple[int, ...], mixed: bool, backward: bool, device: str) -> dict[str, Call]:
    """What each of them has to do, on the same input."""
    steps, batch, inputs, units = size
    torch.manual_seed(0)
    core, lstm = RecurrentCore(inputs, units).to(device), nn.LSTM(inputs, units).to(device)
    x = torch.randn(steps, batch, inputs, device=device, requires_grad=True)
    first = torch.rand(steps, batch, device=device) < RESETS
    state = core.initial_state(batch)
    h, c = state[:1].contiguous(), state[1:].contiguous()
    grad = torch.randn(steps, batch, units, device=device)

    def call(forward: Callable[[], Tensor], module: nn.Module) -> Call:
        wanted = [x, *module.parameters()]

        def run() -> object:
            autocast = torch.autocast(device, dtype=torch.bfloat16, enabled=mixed, cache_enabled=False)
            with torch.set_grad_enabled(backward), autocast:
                output = forward()
            return torch.autograd.grad(output, wanted, grad.to(output.dtype)) if backward else output

        return run

    with torch.autocast(device, dtype=torch.bfloat16, enabled=mixed):
        whole = sequence.plays(units, x.device)
    return {
        OURS: call(lambda: core(x, first, state)[0], core),
        **({STEPS: call(lambda: step_by_step(core, x, first, state), core)} if whole else {}),
        TORCH: call(lambda: lstm(x, (h, c))[0], lstm),
        LITERAL: call(lambda: literal(core, x, first, state)[0], core),
    }


def as_graph(run: Call) -> Call | None:
    """None if it cannot be captured."""
    try:
        return captured(run)
    except RuntimeError as error:
        print(f"not captured: {error}", file=sys.stderr)
        torch.cuda.synchronize()
        return None


def medians(runs: dict[str, Call | None], device: str, rounds: int) -> dict[str, float | None]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(WARM_UP + rounds):
        for name, run in runs.items():
            if run is not None:
                spent = milliseconds(run, device == "cuda")
                times[name] += [spent] if number >= WARM_UP else []
    return {name: statistics.median(spent) if spent else None for name, spent in times.items()}


def measure(device: str, rounds: int) -> Iterator[Result]:
    for size in SIZES:
        for mixed in (False, True):
            for backward in (False, True):
                dtype = "bfloat16" if mixed else "float32"
                part = "forward + backward" if backward else "forward"
                runs: dict[str, Call | None] = {**contenders(size, mixed, backward, device)}
                yield Result(size, dtype, part, "Python", medians(runs, device, rounds))
                if device == "cuda":
                    runs = {name: as_graph(run) for name, run in runs.items() if run is not None}
                    yield Result(size, dtype, part, "graph", medians(runs, device, rounds))


def line(result: Result) -> str:
    cells = ["x".join(map(str, result.size)), result.dtype, result.part, result.launch]
    numbers = [*(result.milliseconds.get(name) for name in NAMES), result.ratio]
    shown = ["-" if number is None else f"{number:.2f}" for number in numbers]
    return "| " + " | ".join([*cells, *shown]) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Times the recurrent core against torch's LSTM.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, help="CPU threads of torch; by default its own choice")
    parser.add_argument("--rounds", type=int, default=20, help="measured rounds, after the warm-up")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU, as cuDNN has it
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no CUDA device")
    if options.threads:
        torch.set_num_threads(options.threads)
    cuda = options.device == "cuda"
    where = torch.cuda.get_device_name() if cuda else f"CPU, {torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}; milliseconds\n")
    print("| " + " | ".join([*HEADINGS, *NAMES, f"{OURS} / {TORCH}"]) + " |")
    print("|---" * len(HEADINGS) + "|---:" * (len(NAMES) + 1) + "|")
    results = []
    for result in measure(options.device, options.rounds):
        print(line(result), flush=True)
        results.append({**asdict(result), "ratio": result.ratio})
    if options.json:
        report = {"torch": torch.__version__, "device": where, "rounds": options.rounds, "results": results}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
