"""N policies on one GPU: one after the other, a stream each, or batched into one?

    python benchmarks/population.py [--device cuda|cpu] [--policies N] [--rounds N] [--json FILE]

What acting and learning spend their time on, the torso, as `lbc` builds it (Nature, 84 x 84, channels last,
centred, float32 weights that work in bfloat16), with a head behind it: "acting" is a forward pass over 240
observations, "learning" a forward and backward pass over 1,312.  On CUDA everything is the replay of a graph.

in_turn     the policies' kernels in one row
streams     a branch of the graph for each policy
batched     the policies' weights stacked: convolutions with N groups, matrix products in batches
as_built    a branch for each, and observations as `lbc` has them: stacked and centred by a kernel of its own,
            where there is one (`lbc/models/pixels.cu`), which knows nothing of batches of policies
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
from lbc.types import Stack

ACTING, LEARNING = 240, 1312  # observations: a group of 480 environments; 32 sequences of 41
ACTIONS = 18
WAYS = ("in_turn", "streams", "batched", "as_built")

Tensors = dict[str, Tensor]


def network() -> nn.Module:
    return nn.Sequential(
        Torso("nature", (4, 84, 84), 512, INITIALISATIONS["orthogonal"], centring=True),
        nn.Linear(512, ACTIONS),
    )


class Ways:
    """The same work, four ways."""

    def __init__(self, policies: int, observations: int, device: str, learning: bool) -> None:
        torch.manual_seed(0)
        self.learning = learning
        self._device = device
        networks = [network().to(device) for _ in range(policies)]
        self._weights = [
            {k: x.detach().requires_grad_() for k, x in net.named_parameters()} for net in networks
        ]
        stacked, self._buffers = stack_module_state(networks)
        self._stacked = {name: x.detach().requires_grad_() for name, x in stacked.items()}
        self._skeleton = copy.deepcopy(networks[0]).to("meta")
        for name in ("0.mean", "0.variance"):  # as after a thousand updates
            self._buffers[name] = 0.1 + 0.1 * torch.rand_like(self._buffers[name])
        frames = torch.randint(0, 256, (4, observations, 1, 84, 84), dtype=torch.uint8, device=device)
        self._stack = Stack(frames, torch.full((1, observations), 9, device=device))
        self._seen = self._stack.tensor()
        self._streams = [torch.cuda.Stream() for _ in range(policies)] if device == "cuda" else []

    def in_turn(self) -> list[Tensor]:
        return self._in_a_row(self._seen)

    def streams(self) -> list[Tensor]:
        return self._apart(self._seen)

    def as_built(self) -> list[Tensor]:
        return self._apart(self._stack)

    def batched(self) -> list[Tensor]:
        def said(weights: Tensors, buffers: Tensors) -> Tensor:
            return self._said(weights, buffers, self._seen)

        return self._outcome(torch.vmap(said)(self._stacked, self._buffers), self._stacked)

    def _in_a_row(self, seen: Tensor | Stack) -> list[Tensor]:
        return [x for i in range(len(self._weights)) for x in self._alone(i, seen)]

    def _apart(self, seen: Tensor | Stack) -> list[Tensor]:
        if not self._streams:
            return self._in_a_row(seen)
        found, here = [], torch.cuda.current_stream()
        for i, stream in enumerate(self._streams):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                found += self._alone(i, seen)
        for stream in self._streams:
            here.wait_stream(stream)
        return found

    def _alone(self, i: int, seen: Tensor | Stack) -> list[Tensor]:
        buffers = {name: x[i] for name, x in self._buffers.items()}
        return self._outcome(self._said(self._weights[i], buffers, seen), self._weights[i])

    def _said(self, weights: Tensors, buffers: Tensors, seen: Tensor | Stack) -> Tensor:
        with torch.autocast(self._device, torch.bfloat16):
            return torch.as_tensor(functional_call(self._skeleton, (weights, buffers), (seen,)))

    def _outcome(self, said: Tensor, weights: Tensors) -> list[Tensor]:
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
        for way in WAYS:
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
