"""N policies on one GPU: one after the other, a stream each, or batched into one?

    python benchmarks/population.py [--device cuda|cpu] [--policies N] [--rounds N] [--json FILE]

What acting and learning spend their time on, the torso, as `lbc` builds it (Nature, 84 x 84, channels last,
float32 weights that work in bfloat16), with a head behind it: "acting" is a forward pass over 240
observations, "learning" a forward and backward pass over 1,312.  On CUDA everything is the replay of a graph.

in turn     the policies' kernels in one row
streams     a branch of the graph for each policy
batched     the policies' weights stacked: convolutions with N groups, matrix products in batches
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.timing import Call, captured, median
from lbc.models.initialisation import INITIALISATIONS
from lbc.models.torso import Torso

ACTING, LEARNING = 240, 1312  # observations: a group of 480 environments; 32 sequences of 41
ACTIONS = 18


def network() -> nn.Module:
    return nn.Sequential(
        Torso("nature", (4, 84, 84), 512, INITIALISATIONS["orthogonal"]), nn.Linear(512, ACTIONS)
    )


class Ways:
    """The same work, three ways."""

    def __init__(self, policies: int, observations: int, device: str, learning: bool) -> None:
        torch.manual_seed(0)
        self.learning = learning
        networks = [network().to(device) for _ in range(policies)]
        self._weights = [
            {k: x.detach().requires_grad_() for k, x in net.named_parameters()} for net in networks
        ]
        stacked, self._buffers = stack_module_state(networks)
        self._stacked = {name: x.detach().requires_grad_() for name, x in stacked.items()}
        self._skeleton = copy.deepcopy(networks[0]).to("meta")
        seen = torch.randint(0, 256, (observations, 4, 84, 84), dtype=torch.uint8, device=device)
        self._seen = seen.contiguous(memory_format=torch.channels_last)
        self._streams = [torch.cuda.Stream() for _ in range(policies)] if device == "cuda" else []

    def in_turn(self) -> list[Tensor]:
        return [x for i in range(len(self._weights)) for x in self._alone(i)]

    def streams(self) -> list[Tensor]:
        if not self._streams:
            return self.in_turn()
        found, here = [], torch.cuda.current_stream()
        for i, stream in enumerate(self._streams):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                found += self._alone(i)
        for stream in self._streams:
            here.wait_stream(stream)
        return found

    def batched(self) -> list[Tensor]:
        return self._outcome(torch.vmap(self._said)(self._stacked, self._buffers), self._stacked)

    def _alone(self, i: int) -> list[Tensor]:
        buffers = {name: x[i] for name, x in self._buffers.items()}
        return self._outcome(self._said(self._weights[i], buffers), self._weights[i])

    def _said(self, weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        half = {name: x.bfloat16() for name, x in weights.items()}
        return torch.as_tensor(functional_call(self._skeleton, (half, buffers), (self._seen,)))

    def _outcome(self, said: Tensor, weights: dict[str, Tensor]) -> list[Tensor]:
        if not self.learning:
            return [said]
        loss = said.float().square().mean(-1).sum()
        return [said.detach(), *torch.autograd.grad(loss, list(weights.values()))]

    def call(self, way: str) -> Call:
        def run() -> object:
            with torch.set_grad_enabled(self.learning):
                return getattr(self, way)()

        return run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--policies", type=int, default=3)
    parser.add_argument("--observations", type=int, nargs=2, default=[ACTING, LEARNING])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no CUDA device")
    on_cuda, found = options.device == "cuda", dict[str, dict[str, float]]()
    for what, observations in zip(("acting", "learning"), options.observations, strict=True):
        ways = Ways(options.policies, observations, options.device, what == "learning")
        found[what] = {}
        for way in ("in_turn", "streams", "batched"):
            run = ways.call(way)
            run = captured(run) if on_cuda else run
            found[what][way] = median(run, options.rounds, on_cuda)
            print(f"{what:<10}{way:<10}{found[what][way]:9.2f} ms", flush=True)
    if options.json:
        report = {"policies": options.policies, "observations": options.observations, "milliseconds": found}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
