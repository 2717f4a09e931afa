"""Observation -> features z: one torso per kind of observation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lbc.errors import UserError
from lbc.models import blocks, pixels
from lbc.models.blocks import ResidualBlock, halving
from lbc.models.initialisation import HIDDEN_GAIN, LINEAR_GAIN, Initialise
from lbc.types import Stack

Shape = tuple[int, ...]

# (filters, kernel, stride) of each plain convolutional torso
CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "conv": ((16, 6, 3), (32, 4, 2), (32, 3, 1)),
    "minatar": ((16, 3, 1),),
}
IMPALA_CHANNELS = (16, 32, 32)
RESIDUAL_CHANNELS = 64
CENTRING_BATCHES = 1000  # of a learner, after which mean and spread of the observations stay as they are
SMALLEST_SPREAD = 0.05  # of observations between 0 and 1


def _impala(channels_in: int, init: Initialise) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for channels in IMPALA_CHANNELS:
        layers += [
            init(nn.Conv2d(channels_in, channels, 3, padding=1), LINEAR_GAIN),
            halving(),
            ResidualBlock(channels, init),
            ResidualBlock(channels, init),
        ]
        channels_in = channels
    return [*layers, nn.ReLU()]


def _residual(shape: Shape, init: Initialise) -> list[nn.Module]:
    """As much arithmetic as 'impala', in a shape that GPUs are fast at: 64 channels on 20 x 20 places.

    The first layer is that of 'nature' with twice the filters, so that it reads its images deep (pixels.py).
    """
    channels = RESIDUAL_CHANNELS
    _large_enough("residual", shape, min(shape[1:]), 8)
    return [
        init(nn.Conv2d(shape[0], channels, 8, 4), LINEAR_GAIN),
        ResidualBlock(channels, init),
        halving(),
        ResidualBlock(channels, init),
        ResidualBlock(channels, init),
        nn.ReLU(),
    ]


def _large_enough(kind: str, shape: Shape, size: int, kernel: int) -> None:
    if size < kernel:
        raise UserError(
            f"model.torso '{kind}' needs larger images than {shape[1]}x{shape[2]}; "
            "choose model.torso 'minatar', 'mlp', or a larger environment.image_size."
        )


def _convolutions(kind: str, shape: Shape, init: Initialise) -> list[nn.Module]:
    channels, size = shape[0], min(shape[1:])
    layers: list[nn.Module] = []
    for filters, kernel, stride in CONVOLUTIONS[kind]:
        _large_enough(kind, shape, size, kernel)
        layers += [init(nn.Conv2d(channels, filters, kernel, stride), HIDDEN_GAIN), nn.ReLU(inplace=True)]
        channels, size = filters, (size - kernel) // stride + 1
    return layers


class Torso(nn.Module):
    """[..., *observation_shape] -> z: [..., units].  uint8 images become 0..1."""

    def __init__(
        self,
        kind: str,
        shape: Shape,
        units: int,
        init: Initialise,
        centring: bool = False,
        own: nn.Module | None = None,  # instead of one of ours
    ) -> None:
        super().__init__()
        self.shape = shape
        self.units = units
        self.centring = centring  # subtract what every observation shows, so that features speak of the rest
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("variance", torch.ones(()))
        self.register_buffer("updates", torch.zeros(()))
        self.mean: Tensor
        self.variance: Tensor
        self.updates: Tensor
        if own is not None:
            body: list[nn.Module] = [own]
        elif kind == "mlp":
            body = [nn.Flatten()]
            body += [init(nn.Linear(math.prod(shape), units), HIDDEN_GAIN), nn.ReLU()]
        else:
            if len(shape) != 3:
                raise UserError(
                    f"model.torso '{kind}' needs images, but observations have shape {shape}; "
                    "choose model.torso 'mlp'."
                )
            if kind == "impala":
                body = _impala(shape[0], init)
            elif kind == "residual":
                body = _residual(shape, init)
            else:
                body = _convolutions(kind, shape, init)
            body.append(nn.Flatten())
        self.body = nn.Sequential(*body)
        with torch.no_grad():
            width = self.body(torch.zeros(1, *shape)).shape[-1]
        self.last = init(nn.Linear(width, units), HIDDEN_GAIN)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):  # up to twice as fast in this layout, on CPU and GPU
                layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)

    def forward(self, observation: Tensor | Stack) -> Tensor:
        begin, *rest = self.body
        if isinstance(observation, Stack) and not pixels.reads(observation, begin):
            observation = observation.tensor()
        x = self._through(begin, rest, observation)
        return self.last(x).relu_().view(*self._lead(observation), self.units)

    def _lead(self, observation: Tensor | Stack) -> Shape:
        """The axes before an observation's own."""
        if isinstance(observation, Stack):
            return tuple(observation.since_first.shape)
        return tuple(observation.shape[: -len(self.shape)])

    def _through(self, begin: nn.Module, rest: Sequence[nn.Module], observation: Tensor | Stack) -> Tensor:
        """What all layers but the last make of it, as few kernels as there can be."""
        played = blocks.play(rest, self.mean.device)
        by_quarters = played and isinstance(rest[0], nn.MaxPool2d)
        by_quarters = by_quarters and pixels.goes_by_quarters(begin, self.shape[1:])
        if by_quarters and isinstance(observation, Stack) and isinstance(begin, nn.Conv2d):
            x = pixels.by_quarters(observation, begin, self._centre())
            return blocks.through(rest, x, begin.bias, quarters=True)
        x = self._begin(begin, observation)
        if played:
            return blocks.through(rest, x)
        for layer in rest:
            x = layer(x)
        return x

    def _begin(self, begin: nn.Module, observation: Tensor | Stack) -> Tensor:
        """What the first layer makes of an observation, centred if it is to be."""
        if isinstance(observation, Stack):
            return pixels.first_layer(observation, begin, self._centre())
        kind, dtype = observation.device.type, self.last.weight.dtype
        mixed = torch.is_autocast_enabled(kind)
        if self.centring and type(begin) is nn.Conv2d:
            return self._centred(begin, observation, mixed)
        if mixed and not self.centring:
            dtype = torch.get_autocast_dtype(kind)  # at once: it holds every byte exactly
        x = self._numbers(observation, dtype)
        made: Tensor = begin((x - self.mean) / self._spread() if self.centring else x)
        return made

    def _centred(self, begin: nn.Conv2d, observation: Tensor, mixed: bool) -> Tensor:
        """begin((observation - mean) / spread), with as few passes over the images as can be.

        A convolution is linear, so that its weights take the division, and what it makes of the mean is
        subtracted from what comes out; in bfloat16 from what goes in, as the difference of two large numbers
        would be lost.
        """
        weight = begin.weight / self._spread()
        unit = 255.0 if observation.dtype == torch.uint8 else 1.0
        x = self._laid_out(observation, begin.weight.dtype)
        if mixed:
            mean = (self.mean * unit).movedim(0, -1).contiguous().movedim(-1, 0)  # channels last, as x is
            return begin._conv_forward(x - mean, weight / unit, begin.bias)
        background = begin._conv_forward(self.mean.unsqueeze(0), weight, None)
        return begin._conv_forward(x, weight / unit, begin.bias) - background

    def _centre(self) -> pixels.Centre | None:
        return (self.mean, self._spread()) if self.centring else None

    def _spread(self) -> Tensor:
        return self.variance.sqrt().clamp(min=SMALLEST_SPREAD)

    def _laid_out(self, observation: Tensor, dtype: torch.dtype) -> Tensor:
        """[n, *shape], as a new tensor where there is something to change; images channels-last."""
        x = observation.reshape(-1, *self.shape)
        layout = torch.channels_last if x.dim() == 4 else torch.contiguous_format
        return x.to(dtype, memory_format=layout)

    def _numbers(self, observation: Tensor, dtype: torch.dtype) -> Tensor:
        """The same with bytes as 0..1."""
        numbers = self._laid_out(observation, dtype)
        return numbers.div_(255.0) if observation.dtype == torch.uint8 else numbers

    @torch.no_grad()
    def track(self, observations: Sequence[Tensor]) -> None:
        """Follows the mean of every pixel and the spread around it; called while the run is young.

        observations: of one update, in any number of pieces, each [..., *shape].
        """
        self.updates += 1
        total = sum(x.numel() for x in observations)
        shares = [x.numel() / total for x in observations]

        def mean_of(piece: Callable[[Tensor], Tensor]) -> Tensor:
            means = [
                share * piece(self._numbers(x, self.mean.dtype))
                for share, x in zip(shares, observations, strict=True)
            ]
            return torch.stack(means).sum(0)

        self.mean += (mean_of(lambda x: x.mean(0)) - self.mean) / self.updates
        spread = mean_of(lambda x: ((x - self.mean) ** 2).mean())
        self.variance += (spread - self.variance) / self.updates
