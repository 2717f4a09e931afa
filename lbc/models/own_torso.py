"""A torso of the user's own, ``model.torso = "my_package.nets:build"``.

::

    def build(shape: tuple[int, ...], model: ModelConfig) -> nn.Module:
        ...     # [n, *shape] floats, bytes already divided by 255  ->  [n, features]

Called once per network.  Behind it comes the layer of `model.torso_units` that every torso ends with.
"""

from __future__ import annotations

import traceback

import torch
from torch import Tensor, nn

from lbc.config import ModelConfig
from lbc.config.own_parts import imported
from lbc.errors import UserError


def own_body(model: ModelConfig, shape: tuple[int, ...]) -> nn.Module:
    """What the factory builds, if it fits."""
    what = f"model.torso {model.torso}"
    factory = imported(model.torso, what)
    try:
        module = factory(shape, model)
    except UserError:
        raise
    except Exception as error:
        raise _failed(what, "its factory", error) from error
    if not isinstance(module, nn.Module):
        raise UserError(f"{what} must return a torch.nn.Module, not a {type(module).__name__}.")
    _check(what, module, shape)
    return module


def _check(what: str, module: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0))
    if x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    try:
        features, fewer = module(x), module(x[:2])
    except Exception as error:
        raise _failed(what, f"forward of {tuple(x.shape)}", error) from error
    if not isinstance(features, Tensor) or features.dim() != 2 or len(features) != 3:
        shown = tuple(features.shape) if isinstance(features, Tensor) else f"a {type(features).__name__}"
        raise UserError(f"{what} must turn {tuple(x.shape)} into (3, features), but it gives {shown}.")
    if not torch.allclose(features[:2], fewer, rtol=1e-4, atol=1e-5):
        raise UserError(
            f"{what} says something else about an observation in another batch; "
            "batch norm and dropout do not fit here, layer norm does."
        )
    learned = list(module.named_parameters())
    wanted = [parameter for _, parameter in learned if parameter.requires_grad]
    found = torch.autograd.grad(features.sum(), wanted, allow_unused=True) if wanted else ()
    reached = {id(p) for p, gradient in zip(wanted, found, strict=True) if gradient is not None}
    for name, parameter in learned:
        if id(parameter) not in reached:
            raise UserError(f"{what} has a parameter that is not learned, '{name}'; make it a buffer.")


def _failed(what: str, doing: str, error: Exception) -> UserError:
    place = traceback.extract_tb(error.__traceback__)[-1]
    told = f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else type(error).__name__
    return UserError(f"{what} failed in {doing} ({told}; {place.filename}, line {place.lineno}).")
