"""A trained agent as one function, for programs that have no lbc::

    (observation, first, previous_action, reward, state, psi) -> (probabilities, state)

    observation      [B, *observation_shape]  the newest frames, stacked along the first axis, newest last;
                                              the first frame of an episode fills the stack
    first            [B] bool                 an episode begins: state, last action and reward do not count
    previous_action  [B] int64
    reward           [B]                      unshaped, what that action brought
    state            [P, 2, B, units]         zeros at the beginning
    psi              [B, 2M]                  tau_1..tau_M, omega_1..omega_M
    probabilities    [B, A]                   mu; actions are drawn from it

A TorchScript file has the attributes `psi` [1, 2M] (the favourite, or as the component was trained) and
`state` [P, 2, 1, units] (zeros), and all facts as JSON in its extra file ``lbc.json``; an ONNX file has the
same JSON as its metadata ``lbc``.
"""

from __future__ import annotations

import copy
import io
import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lbc import __version__
from lbc.agents.agent import Agent
from lbc.agents.folder import write_folder
from lbc.behavior import BehaviorMapping
from lbc.errors import UserError, missing_extra, nearest
from lbc.models import RecurrentCore

INPUTS = ("observation", "first", "previous_action", "reward", "state", "psi")
OUTPUTS = ("probabilities", "new_state")
FORMATS = ("torchscript", "onnx", "lbc")
_BATCH_AXIS = {"state": 2, "new_state": 2}  # of all others it is the first


def export(agent: Agent, path: Path, format: str = "torchscript", component: int | None = None) -> Path:
    """Writes the whole behavior, or one component of it (from 1) alone; 'lbc' is a folder with all of it."""
    if format not in FORMATS:
        hint = nearest(format, FORMATS)
        raise UserError(f"format is '{format}', but must be torchscript, onnx or lbc.{hint}")
    if format == "lbc":
        if component is not None:
            raise UserError("format 'lbc' holds all components; leave the component out.")
        return write_folder(agent, path)
    function = _Function(agent, component).eval()
    with torch.no_grad(), warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):  # both ways are said to be old, and both work
            warnings.simplefilter("ignore", kind)
        try:
            traced: Any = torch.jit.trace(function, _example(agent, function, 2), check_trace=False)
            _check(function, traced, _example(agent, function, 3))
            path.parent.mkdir(parents=True, exist_ok=True)
            if format == "onnx":
                _write_onnx(agent, function, path)
            else:
                torch.jit.save(traced, path, {"lbc.json": json.dumps(_facts(agent, function))})
        except UserError:
            raise
        except Exception as error:  # a torso of the user's own may fail in any way
            told = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UserError(f"the agent cannot be written as {format} to '{path}' ({told}).") from error
    return path


class _Function(nn.Module):
    """The module's text, as a module: copies of the networks on the CPU."""

    psi: Tensor
    state: Tensor

    def __init__(self, agent: Agent, component: int | None) -> None:
        super().__init__()
        behind, count = agent.mapping.components, len(agent.mapping.components)
        psi = torch.as_tensor(agent.favourite)
        if component is not None:
            if not 1 <= component <= count:
                raise UserError(f"component is {component}, but must lie between 1 and {count}.")
            psi, behind = torch.tensor([agent.config.target.kappa, 1.0]), (behind[component - 1],)
        policies = sorted(set(behind))
        components = tuple(policies.index(policy) for policy in behind)
        self._mapping = BehaviorMapping(components, agent.mapping.control, agent.mapping.distil)
        self._population = [agent.population[policy] for policy in policies]
        self.networks = nn.ModuleList()
        for policy in policies:
            network = copy.deepcopy(agent.networks[policy]).cpu()
            network.mixed = False
            if isinstance(network.core, RecurrentCore):
                network.core = _OneStep(network.core)  # type: ignore[assignment]
            self.networks.append(network.requires_grad_(False))
        units = agent.config.model.lstm_units
        self.register_buffer("psi", psi.to(agent.dtype).unsqueeze(0))
        self.register_buffer("state", torch.zeros(len(policies), 2, 1, units, dtype=agent.dtype))

    def forward(
        self,
        observation: Tensor,
        first: Tensor,
        previous_action: Tensor,
        reward: Tensor,
        state: Tensor,
        psi: Tensor,
    ) -> tuple[Tensor, Tensor]:
        reward = torch.where(first, torch.zeros_like(reward), reward)
        said = []
        for i, (network, policy) in enumerate(zip(self.networks, self._population, strict=True)):
            rows = (observation, first, previous_action, policy.shape(reward))
            said.append(network(*(x.unsqueeze(0) for x in rows), state[i]))
        phi = torch.stack([x.phi[0] for x in said])
        return self._mapping.log_mu(phi, psi).exp(), torch.stack([x.state for x in said])


class _OneStep(nn.Module):
    """`RecurrentCore` for a single step, without a write in place."""

    def __init__(self, core: RecurrentCore) -> None:
        super().__init__()
        self.input, self.hidden = core.input, core.hidden

    def forward(self, x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        h, c = (state * (~first[0]).to(state.dtype).unsqueeze(-1)).unbind()
        i, f, g, o = (self.input(x[0]) + self.hidden(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h.unsqueeze(0), torch.stack([h, c])


def _example(agent: Agent, function: _Function, batch: int) -> tuple[Tensor, ...]:
    """Something that the function could be asked."""
    spec, random = agent.spec, torch.Generator().manual_seed(batch)
    seen = torch.rand(batch, *spec.observation_shape, generator=random)
    psi, state = function.psi, function.state
    return (
        (255 * seen).to(torch.uint8) if spec.frame_dtype.__name__ == "uint8" else seen.to(psi.dtype),
        torch.arange(batch) == 0,
        torch.arange(batch) % spec.num_actions,
        torch.arange(batch).to(psi.dtype),
        state.expand(-1, -1, batch, -1) + torch.rand(batch, 1, generator=random).to(psi.dtype),
        psi.expand(batch, -1).clone(),
    )


def _check(function: _Function, traced: Any, example: tuple[Tensor, ...]) -> None:
    """A torso of the user's own may decide in Python what a trace cannot know."""
    for one, other in zip(function(*example), traced(*example), strict=True):
        if one.shape != other.shape or not torch.allclose(one, other, rtol=1e-4, atol=1e-5):
            raise UserError("a trace of model.torso does not say what it says; it cannot be exported.")


def _write_onnx(agent: Agent, function: _Function, path: Path) -> None:
    try:
        import onnx
    except ImportError:
        raise missing_extra("onnx", "export") from None
    axes = {name: {_BATCH_AXIS.get(name, 0): "batch"} for name in (*INPUTS, *OUTPUTS)}
    written: Any = io.BytesIO()  # it takes one, whatever its annotation says
    torch.onnx.export(
        function,
        _example(agent, function, 2),
        written,
        dynamo=False,
        input_names=list(INPUTS),
        output_names=list(OUTPUTS),
        dynamic_axes=axes,
    )
    model = onnx.load_from_string(written.getvalue())
    for node in model.graph.node:
        if node.op_type == "Transpose":  # the exporter leaves axes that are counted from the end
            (axes_of,) = node.attribute
            axes_of.ints[:] = [axis % len(axes_of.ints) for axis in axes_of.ints]
    onnx.helper.set_model_props(model, {"lbc": json.dumps(_facts(agent, function))})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def _facts(agent: Agent, function: _Function) -> dict[str, Any]:
    spec = agent.spec
    return {
        "lbc": __version__,
        "environment": spec.id,
        "frames": agent.frames,
        "observation_shape": spec.observation_shape,
        "observation_dtype": spec.frame_dtype.__name__,
        "frame_stack": spec.frame_stack,
        "num_actions": spec.num_actions,
        "state_shape": [*function.state.shape[:2], "batch", function.state.shape[3]],
        "psi": function.psi[0].tolist(),
    }
