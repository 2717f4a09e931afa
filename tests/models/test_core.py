"""The recurrent core: torch's LSTM step by step, with resets inside a sequence."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call

from lbc.models import fused
from lbc.models.core import NoCore, RecurrentCore
from tests.oracles.lstm import literal

INPUTS, UNITS = 5, 4
STEPS, BATCH = 6, 3
RESETS = {
    "none": [],
    "first": [(0, 0), (0, 2)],
    "middle": [(3, 1)],
    "last": [(5, 0), (5, 1)],
    "adjacent": [(2, 0), (3, 0), (3, 2)],
    "all": [(t, b) for t in range(STEPS) for b in range(BATCH)],
}
ACCELERATORS = [
    pytest.param(name, marks=pytest.mark.skipif(not present, reason=f"no {name} here"))
    for name, present in (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available()))
]


@pytest.fixture
def core() -> RecurrentCore:
    torch.manual_seed(0)
    return RecurrentCore(INPUTS, UNITS).double()


def rows(t: int, b: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randn(t, b, INPUTS, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def never(t: int, b: int = 2) -> torch.Tensor:
    return torch.zeros(t, b, dtype=torch.bool)


def example(core: RecurrentCore, resets: str, steps: int = STEPS) -> tuple[Tensor, Tensor, Tensor]:
    """x, first and a state to start from, in the type of the core and on its device."""
    weight, random = core.hidden.weight, torch.Generator().manual_seed(3)
    first = never(steps, BATCH)
    for t, b in RESETS[resets]:
        first[t, b] = True
    x = torch.randn(steps, BATCH, INPUTS, generator=random, dtype=torch.float64)
    state = torch.randn(2, BATCH, UNITS, generator=random, dtype=torch.float64)
    return x.to(weight), first.to(weight.device), state.to(weight)


def gradients(core: RecurrentCore, call, x: Tensor, first: Tensor, state: Tensor) -> list[Tensor]:
    """Of a sum in which every number of output and state counts differently: by parameters, x and state."""
    x, state = x.clone().requires_grad_(), state.clone().requires_grad_()
    output, after = call(x, first, state)
    loss = sum((torch.arange(y.numel(), device=y.device).view_as(y).cos() * y).sum() for y in (output, after))
    return list(torch.autograd.grad(loss, [*core.parameters(), x, state]))


@pytest.mark.parametrize("resets", RESETS)
def test_the_steps_of_a_gpu_are_the_literal_loop(core, resets):
    """The same formulas as plain operations; on a GPU `test_an_accelerator...` runs the compiled ones."""
    x, first, state = example(core, resets)

    def on_gpu(x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return fused.Steps.apply(core.input(x), core.hidden.weight, first, state)

    def oracle(x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return literal(core, x, first, state)

    close = {"rtol": 1e-10, "atol": 1e-10}
    for ours, theirs in zip(on_gpu(x, first, state), oracle(x, first, state), strict=True):
        torch.testing.assert_close(ours, theirs, **close)
    with torch.no_grad():
        for ours, theirs in zip(
            fused.steps(core.input(x), core.hidden.weight, first, state), oracle(x, first, state), strict=True
        ):
            torch.testing.assert_close(ours, theirs, **close)
    found, expected = (gradients(core, call, x, first, state) for call in (on_gpu, oracle))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **close)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("resets", RESETS)
def test_it_is_the_literal_loop(core, resets, dtype):
    core.to(dtype)
    x, first, state = example(core, resets)
    expected = literal(core, x, first, state)
    given = state.clone()
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(core(x, first, state), expected)
        assert torch.equal(state, given), "the given state belongs to the caller"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("resets", RESETS)
def test_its_gradients_are_those_of_the_literal_loop(core, resets, dtype):
    core.to(dtype)
    args = example(core, resets)
    expected = gradients(core, lambda *a: literal(core, *a), *args)
    torch.testing.assert_close(gradients(core, core, *args), expected)


@pytest.mark.parametrize("resets", RESETS)
def test_its_gradients_are_finite_differences(core, resets):
    x, first, state = example(core, resets)
    names = [name for name, _ in core.named_parameters()]

    def call(x: Tensor, state: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        return functional_call(core, dict(zip(names, weights, strict=True)), (x, first, state))

    inputs = [x, state, *(weight.detach() for weight in core.parameters())]
    assert torch.autograd.gradcheck(call, [y.clone().requires_grad_() for y in inputs])


@pytest.mark.parametrize("used", [0, 1], ids=["output", "state"])
def test_output_and_state_may_be_used_alone(core, used):
    args = example(core, "middle")
    expected, found = ([*torch.autograd.grad(call(*args)[used].sum(), [*core.parameters()])]
                       for call in (lambda *a: literal(core, *a), core))  # fmt: skip
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("learns", ["input.weight", "hidden.weight", "state"])
def test_what_is_frozen_needs_no_gradient(core, learns):
    x, first, state = example(core, "middle")
    core.requires_grad_(False)
    wanted = state if learns == "state" else core.get_parameter(learns)
    wanted.requires_grad_()
    expected, found = (torch.autograd.grad(call(x, first, state)[0].sum(), wanted)
                       for call in (lambda *a: literal(core, *a), core))  # fmt: skip
    torch.testing.assert_close(found, expected)


def test_a_single_step(core):
    x, first, state = example(core, "first", steps=1)
    expected = literal(core, x, first, state)
    torch.testing.assert_close(core(x, first, state), expected)
    with torch.inference_mode():
        torch.testing.assert_close(core(x, first, state), expected)
    expected = gradients(core, lambda *a: literal(core, *a), x, first, state)
    torch.testing.assert_close(gradients(core, core, x, first, state), expected)


@pytest.mark.parametrize("resets", RESETS)
def test_the_state_at_every_border_is_that_of_a_roll_out(core, resets):
    x, first, start = example(core, resets)
    state = start
    for t in range(STEPS):
        with torch.inference_mode():
            output, state = core(x[t : t + 1], first[t : t + 1], state)
        outputs, border = core(x[: t + 1], first[: t + 1], start)
        torch.testing.assert_close((output[0], state), (outputs[t], border))


def test_without_gradient_nothing_is_kept_for_backward(core):
    kept: list[Tensor] = []
    with saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                output, state = core(*example(core, "middle"))
            assert output.grad_fn is None and state.grad_fn is None and not kept
        core.requires_grad_(False)
        assert not core(*example(core, "middle"))[0].requires_grad and not kept
        core.requires_grad_(True)
        core(*example(core, "middle"))
    assert kept, "otherwise this test sees nothing"


def test_backward_can_be_repeated_but_not_differentiated(core):
    loss, weight = core(*example(core, "middle"))[0].square().sum(), core.hidden.weight
    (one,) = torch.autograd.grad(loss, weight, retain_graph=True)
    (two,) = torch.autograd.grad(loss, weight, create_graph=True)
    assert torch.equal(one, two)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        two.sum().backward()


@pytest.mark.parametrize("resets", RESETS)
def test_under_autocast_only_matrix_products_are_rounded(core, resets):
    """Everything that comes out is float32, and off by the rounding of bfloat16 (2^-9) or a few of them."""
    core.float()
    args = example(core, resets)
    exact = literal(core, *args), gradients(core, core, *args)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = core(*args), gradients(core, core, *args)
        with torch.inference_mode():
            torch.testing.assert_close(core(*args), found[0], rtol=1e-2, atol=1e-2)
    for tensors, references in zip(found, exact, strict=True):
        for tensor, reference in zip(tensors, references, strict=True):
            assert tensor.dtype == torch.float32
            assert (tensor - reference).norm() <= 0.02 * reference.norm()


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_under_autocast_the_cell_fades_as_slowly_as_it_should(core, mode):
    """A forget gate of sigmoid(7) = 0.9991, 100 steps; bfloat16 has nothing between 0.996 and 1."""
    core.float()
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.zero_()
        core.input.bias[UNITS : 2 * UNITS] = 7.0
    with torch.autocast("cpu", dtype=torch.bfloat16), mode():
        _, state = core(torch.zeros(100, 2, INPUTS), never(100), torch.ones(2, 2, UNITS))
    expected = torch.sigmoid(torch.tensor(7.0)) ** 100
    torch.testing.assert_close(state[1], expected.expand(2, UNITS), rtol=1e-4, atol=0)


@pytest.mark.parametrize("device", ACCELERATORS)
@pytest.mark.parametrize("resets", RESETS)
def test_an_accelerator_agrees_with_the_cpu(core, resets, device):
    core.float()
    args = example(core, resets)
    expected = core(*args), gradients(core, core, *args)
    core.to(device)
    args = example(core, resets)
    found = core(*args), gradients(core, core, *args)
    with torch.inference_mode():
        torch.testing.assert_close(core(*args), found[0])
    for tensors, references in zip(found, expected, strict=True):
        for tensor, reference in zip(tensors, references, strict=True):
            torch.testing.assert_close(tensor.cpu(), reference, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no cuda here")
@pytest.mark.parametrize("mixed", [False, True], ids=["float32", "bfloat16"])
def test_a_cuda_graph_can_hold_it(core, mixed):
    """Captured once, replayed with other numbers and other resets."""
    core.float().cuda()
    x, first, state = example(core, "middle")

    def call() -> tuple[Tensor, Tensor]:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed, cache_enabled=False):
            output, after = core(x, first, state)
        return output, torch.autograd.grad(output.sum() + after.sum(), core.hidden.weight)[0]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    x.copy_(x.flip(0))
    first.copy_(example(core, "adjacent")[1])
    graph.replay()
    torch.testing.assert_close(found, call())


def test_its_parameters_are_two_linear_layers(core):
    shapes = {name: tuple(tensor.shape) for name, tensor in core.state_dict().items()}
    gates = 4 * UNITS
    assert shapes == {
        "input.weight": (gates, INPUTS),
        "input.bias": (gates,),
        "hidden.weight": (gates, UNITS),
    }


def test_without_resets_it_is_torch_s_lstm(core):
    """Same order of gates (input, forget, cell, output); torch keeps a second bias, zero here."""
    nn.init.normal_(core.input.bias)
    reference = nn.LSTM(INPUTS, UNITS).double()
    with torch.no_grad():
        reference.weight_ih_l0.copy_(core.input.weight)
        reference.weight_hh_l0.copy_(core.hidden.weight)
        reference.bias_ih_l0.copy_(core.input.bias)
        reference.bias_hh_l0.zero_()
    x, state = rows(7), torch.randn(2, 2, UNITS, dtype=torch.float64)
    expected, (h, c) = reference(x, (state[:1], state[1:]))
    output, after = core(x, never(7), state)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(after, torch.cat([h, c]))


def test_a_reset_inside_equals_two_sequences(core):
    """Environment 0 restarts at step 3, environment 1 never; both at their own time."""
    x, first = rows(7), never(7)
    first[3, 0] = True
    state = torch.randn(2, 2, UNITS, dtype=torch.float64)
    output, after = core(x, first, state)
    before, _ = core(x[:3, :1], never(3, 1), state[:, :1])
    behind, last = core(x[3:, :1], never(4, 1), core.initial_state(1))
    torch.testing.assert_close(output[:, :1], torch.cat([before, behind]))
    torch.testing.assert_close(after[:, :1], last)
    untouched, _ = core(x[:, 1:], never(7, 1), state[:, 1:])
    torch.testing.assert_close(output[:, 1:], untouched)


def test_a_reset_at_the_first_step_forgets_the_given_state(core):
    x, first = rows(3), never(3)
    first[0] = True
    output, _ = core(x, first, torch.full((2, 2, UNITS), 5.0, dtype=torch.float64))
    expected, _ = core(x, never(3), core.initial_state(2))
    torch.testing.assert_close(output, expected)


def test_no_gradient_crosses_a_reset(core):
    x = rows(4).requires_grad_()
    first = never(4)
    first[2] = True
    output, _ = core(x, first, core.initial_state(2))
    output[3].sum().backward()
    assert not x.grad[:2].any() and x.grad[2].any()


def test_a_sequence_in_chunks_equals_the_whole(core):
    x, first = rows(8), never(8)
    first[5, 1] = True
    whole, last = core(x, first, core.initial_state(2))
    state, parts = core.initial_state(2), []
    for chunk in (slice(0, 1), slice(1, 4), slice(4, 8)):
        output, state = core(x[chunk], first[chunk], state)
        parts.append(output)
    torch.testing.assert_close(torch.cat(parts), whole)
    torch.testing.assert_close(state, last)


def test_every_gate_starts_orthogonal_without_bias(core):
    for weight in (core.input.weight, core.hidden.weight):
        for gate in weight.detach().chunk(4):
            torch.testing.assert_close(gate @ gate.t(), torch.eye(UNITS).double(), atol=1e-6, rtol=0)
    assert not core.input.bias.any()
    assert core.hidden.bias is None


def test_without_memory_features_pass_through():
    core = NoCore(INPUTS)
    x, state = rows(3), core.initial_state(2)
    output, after = core(x, never(3), state)
    assert output is x and after is state and state.shape == (2, 2, 0)
