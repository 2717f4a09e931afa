"""AdamW with a schedule for its weight decay, of moments that a graph may hold and a checkpoint may fill.

Beside Adam's moments there may be the mean of a network over its last updates, which is what agents play:
weights jump about the place that they follow, and scores with them.  Running statistics are averaged, too,
because weights are rescaled as they move.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from lbc.config import LearnerConfig

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
MEAN = "average"
YOUNG = 9.0  # while there are few updates, their mean is of the last ninth of them


class AdamW:
    """::

    optimizer.schedule(rate, decay)   # in force from the next step on
    optimizer.step()                  # weights decay towards 0, then take their step

    The step is torch's own.  (`torch.optim.AdamW` would load torch's compiler, too: seconds at every start.)
    Nothing here moves or waits once it is built, so that steps can be captured in a CUDA graph.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], config: LearnerConfig, averaged: Iterable[Tensor] = ()
    ) -> None:
        self._parameters: list[Tensor] = list(parameters)
        self._config = config
        some = self._parameters[0]
        self._on_cuda = some.is_cuda
        self._rate: float | Tensor = torch.zeros((), device=some.device) if self._on_cuda else 0.0
        self._kept = torch.ones((), device=some.device, dtype=some.dtype)  # of every weight, at each step
        self.moments: dict[str, list[Tensor]] = {
            "step": [torch.zeros((), device=p.device) for p in self._parameters],
            "exp_avg": [torch.zeros_like(p) for p in self._parameters],
            "exp_avg_sq": [torch.zeros_like(p) for p in self._parameters],
        }
        self._averaged = list(averaged)
        if config.averaged_updates:
            self.moments[MEAN] = [x.detach().clone() for x in self._averaged]

    def schedule(self, rate: float, decay: float) -> None:
        """Learning rate and weight decay from the next step on."""
        if isinstance(self._rate, Tensor):
            self._rate.fill_(rate)
        else:
            self._rate = rate
        self._kept.fill_(1.0 - rate * decay)

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        torch._foreach_mul_(self._parameters, self._kept)
        used = [i for i, parameter in enumerate(self._parameters) if parameter.grad is not None]
        step, mean, square = ([self.moments[name][i] for i in used] for name in MOMENTS)
        adamw(
            [self._parameters[i] for i in used],
            [g for i in used if (g := self._parameters[i].grad) is not None],
            mean,
            square,
            [],
            step,
            fused=True,
            capturable=self._on_cuda,
            amsgrad=False,
            beta1=self._config.adam_beta1,
            beta2=self._config.adam_beta2,
            lr=self._rate,
            weight_decay=0.0,  # has its own schedule, above
            eps=self._config.adam_epsilon,
            maximize=False,
        )

    @torch.no_grad()
    def average(self) -> None:
        """Of `averaged`, once for every step."""
        mean = self.moments.get(MEAN)
        if not mean:
            return
        steps = torch.stack(self.moments["step"]).max()  # a parameter without a gradient takes none
        young = YOUNG / (steps + YOUNG - 1.0)
        rate = young.clamp(min=1.0 / self._config.averaged_updates).to(mean[0].dtype)
        torch._foreach_mul_(mean, 1.0 - rate)
        torch._foreach_add_(mean, torch._foreach_mul(self._averaged, rate))

    def state(self) -> dict[str, list[Tensor]]:
        """Step counts and moments, one per parameter, and the mean if there is one: copies."""
        return {name: [x.clone() for x in kept] for name, kept in self.moments.items()}

    @torch.no_grad()
    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """In place, as a captured graph needs it; where nothing is saved, from zero, and the mean from what
        there is."""
        for name, kept in self.moments.items():
            begin = self._averaged if name == MEAN else [torch.zeros_like(x) for x in kept]
            for tensor, value in zip(kept, state.get(name) or begin, strict=True):
                tensor.copy_(value)
