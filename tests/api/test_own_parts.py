"""Games, torsos and reward shapings of the user's own: they train, resume and load, or do not fit."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

import lbc
from lbc.behavior import PolicyHyperParameters, build_population
from lbc.cli import main
from lbc.config import ModelConfig, PopulationConfig, TargetConfig
from lbc.errors import UserError
from lbc.models import PolicyNetwork
from lbc.types import EnvironmentSpec

VECTOR = EnvironmentSpec("vector", (5,), np.float32, num_actions=3)


def test_they_train_and_are_part_of_the_run(own):
    assert own.summary["outcome"] == "finished" and own.summary["updates"] > 0
    agent = own.agent()
    assert agent.networks[0].torso.body[0][3].normalized_shape == (72,)
    assert agent.population[1].shape(torch.tensor([3.0])).item() == 1.5
    before = PolicyNetwork(agent.spec, agent.config.model, agent.config.target)
    trained = agent.networks[0].state_dict()["torso.body.0.0.bias"]
    assert not torch.equal(trained, before.state_dict()["torso.body.0.0.bias"]), "it has been trained"


def test_a_run_with_own_parts_goes_on(own, tmp_path):
    class Stop(lbc.Callback):
        def on_report(self, metrics):
            return True

    options = {name: dict(values) for name, values in lbc.load_run(own.path).config.items()}
    options["run"]["frames"] = 300
    out = tmp_path / "run"
    stopped = lbc.train("catch", out=out, show=False, callbacks=[Stop()], **options)
    assert stopped.summary["outcome"] == "interrupted"
    assert lbc.resume(out, show=False).summary["outcome"] == "finished"


def test_code_that_a_run_names_is_imported_only_if_allowed(own, tmp_path, capsys):
    with pytest.raises(UserError, match=r"environment.id = 'own_code:Lights'; if you trust it"):
        lbc.load_agent(own.path)
    with pytest.raises(UserError, match="if you trust it"):
        lbc.evaluate(own.path)
    assert len(lbc.evaluate(own.path, episodes=2, allow_code=True)["favourite"].episodes) == 2
    strange = tmp_path / "strange"
    shutil.copytree(own.path, strange)
    text = (own.path / "config.toml").read_text()
    for key, harmless in (("id", "catch"), ("torso", "minatar")):
        text = "\n".join(f'{key} = "{harmless}"' if x.startswith(f"{key} =") else x for x in text.split("\n"))
    (strange / "config.toml").write_text(text)
    with pytest.raises(UserError, match=r"population.shapings\[1\] = 'own_code:halved'"):
        lbc.load_agent(strange)
    assert main(["eval", str(own.path), "--episodes", "1"]) == 2
    assert "--allow-code" in capsys.readouterr().err
    assert main(["eval", str(own.path), "--episodes", "1", "--allow-code"]) == 0


@pytest.mark.parametrize(
    ("torso", "sentence"),
    [
        ("own_code:with_batch_norm", "something else about an observation in another batch; batch norm"),
        ("own_code:with_idle_weight", "a parameter that is not learned, 'idle'; make it a buffer"),
        ("own_code:wrong_size", r"failed in forward of \(3, 5\) \(RuntimeError: mat1 and mat2"),
        ("own_code:no_module", "must return a torch.nn.Module, not a str"),
        ("own_code:failing", r"failed in its factory \(ValueError: no such layer; .*own_code.py, line"),
        ("own_code:absent", r"module own_code has no 'absent' \(model.torso own_code:absent\)"),
        ("own_code:number", "must name a function or class, not 5"),
        ("no_such_code:torso", "module of model.torso no_such_code:torso cannot be imported"),
        ("own code:torso", "must be written module:factory"),
    ],
)
def test_a_torso_that_does_not_fit_is_told_at_once(torso, sentence):
    with pytest.raises(UserError, match=sentence):
        PolicyNetwork(VECTOR, ModelConfig(torso=torso, torso_units=8), TargetConfig())


def test_a_torso_must_give_features():
    image = EnvironmentSpec("image", (4, 8, 6), np.uint8, num_actions=3)
    with pytest.raises(UserError, match=r"into \(3, features\), but it gives \(3, 4, 8, 6\)"):
        PolicyNetwork(image, ModelConfig(torso="own_code:unflattened"), TargetConfig())


def test_a_check_leaves_the_seed_alone():
    """The weights behind an own torso are those that the seed gives."""
    drawn = []
    for name in ("own_code:halved", "own_code:halved"):
        torch.manual_seed(3)
        build_population(PopulationConfig((0.9,), (name,)))
        drawn.append(torch.rand(1).item())
    torch.manual_seed(3)
    assert drawn == [torch.rand(1).item()] * 2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("own_code:summed", "each entry from its own"),
        ("own_code:scalar_only", r"failed \(RuntimeError: .*\); it takes a tensor"),
        ("own_code:infinite", "must return a finite tensor"),
        ("own_code:doubled", "of the rewards' shape and type"),
        ("own_code:number", "must name a function or class"),
        ("squrt", "Did you mean 'sqrt'"),
    ],
)
def test_a_shaping_that_does_not_fit_is_told_at_once(name, sentence):
    with pytest.raises(UserError, match=sentence):
        build_population(PopulationConfig((0.9,), (name,)))


def test_an_own_shaping_shapes():
    (policy,) = build_population(PopulationConfig((0.9,), ("own_code:halved",)))
    assert policy == PolicyHyperParameters(0, 0.9, "own_code:halved")
    assert policy.shape(torch.tensor([[2.0, -4.0]])).tolist() == [[1.0, -2.0]]
