"""An exported agent says what the agent says, in a process that has no lbc."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from lbc.agents.scenes import _Telling
from lbc.cli import main
from lbc.errors import UserError

STEPS, BEGINNINGS = 7, (0, 4)

FRESH = """
import json, sys
sys.modules["lbc"] = None  # not to be imported
import torch
from pathlib import Path
facts = {"lbc.json": ""}
function = torch.jit.load(sys.argv[1], _extra_files=facts)
facts = json.loads(facts["lbc.json"])
kind = getattr(torch, facts["observation_dtype"])
steps, said = json.loads(Path(sys.argv[2]).read_text()), []
state = function.state
for observation, first, action, reward in steps:
    asked = (torch.tensor([observation]).to(kind), torch.tensor([first]), torch.tensor([action]))
    probabilities, state = function(*asked, torch.tensor([reward]), state, function.psi)
    said.append(probabilities[0].tolist())
print(json.dumps({"said": said, "facts": facts}))
"""


def played(agent, psi):
    """What the agent is shown and what it says: [(observation, first, previous action, reward)], [mu]."""
    rng, mind = np.random.default_rng(0), agent.mind(1, 0, _Telling)
    shown, said, action = [], [], 0
    for step in range(STEPS):
        frame = rng.random(agent.spec.frame_shape)
        frame = (255 * frame).astype(np.uint8) if agent.spec.frame_dtype is np.uint8 else frame
        first = step in BEGINNINGS
        reward = 0.0 if first else float(rng.normal())
        thought = mind.think(frame[None], np.concatenate([[first, reward, False, True], psi])[None])
        shown.append((mind.seen.tensor()[0, 0].tolist(), first, action, reward))
        said.append(mind.mu[0].tolist())
        action = int(thought.actions[0])
    return shown, np.array(said)


@pytest.fixture(scope="module", params=["catch", "own"])
def agent(request):
    """A plain network, and one with memory, stacked byte images and a torso of the user's own."""
    return request.getfixturevalue(request.param).agent()


@pytest.mark.filterwarnings("error::torch.jit.TracerWarning")
def test_torchscript_says_the_same_in_a_process_without_lbc(agent, tmp_path):
    shown, said = played(agent, agent.favourite)
    path = agent.export(tmp_path / "new" / "agent.pt")
    (tmp_path / "shown.json").write_text(json.dumps(shown))
    command = [sys.executable, "-W", "ignore", "-c", FRESH, str(path), str(tmp_path / "shown.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    np.testing.assert_allclose(found["said"], said, atol=1e-5)
    np.testing.assert_allclose(found["facts"]["psi"], agent.favourite, rtol=1e-5)
    assert found["facts"]["environment"] == agent.spec.id
    assert np.ptp(said, axis=0).max() > 1e-3, "it does look at what it is shown"


def test_onnx_says_the_same(agent, tmp_path):
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    shown, said = played(agent, agent.favourite)
    path = agent.export(tmp_path / "agent.onnx", "onnx")
    function = reference.ReferenceEvaluator(str(path))
    (facts,) = (json.loads(x.value) for x in onnx.load(path).metadata_props if x.key == "lbc")
    shape = [1 if size == "batch" else size for size in facts["state_shape"]]
    state, psi = np.zeros(shape, np.float32), np.array([facts["psi"]], np.float32)
    for (observation, first, action, reward), mu in zip(shown, said, strict=True):
        asked = {
            "observation": np.array([observation], facts["observation_dtype"]),
            "first": np.array([first]),
            "previous_action": np.array([action]),
            "reward": np.array([reward], np.float32),
            "state": state,
            "psi": psi,
        }
        probabilities, state = function.run(None, asked)
        np.testing.assert_allclose(probabilities[0], mu, atol=1e-5)


def test_one_component_alone(agent, tmp_path):
    """The mixture with a one-hot omega is that component; a batch is as good as its rows."""
    m = len(agent.mapping.components)
    psi = np.concatenate([np.full(m, agent.config.target.kappa), np.eye(m)[1]])
    shown, said = played(agent, psi)
    function = torch.jit.load(agent.export(tmp_path / "one.pt", component=2))
    assert function.psi.tolist() == [[agent.config.target.kappa, 1.0]]
    kind = torch.uint8 if agent.spec.frame_dtype is np.uint8 else torch.float32
    state = function.state.expand(-1, -1, 3, -1)
    for (observation, first, action, reward), mu in zip(shown, said, strict=True):
        rows = (torch.tensor([x] * 3) for x in (observation, first, action, reward))
        observations, *others = rows
        probabilities, state = function(observations.to(kind), *others, state, function.psi.expand(3, -1))
        np.testing.assert_allclose(probabilities, [mu] * 3, atol=1e-5)


def test_the_command(catch, own, tmp_path, capsys):
    assert main(["export", str(catch.path), "--out", str(tmp_path / "catch.pt")]) == 0
    assert torch.jit.load(tmp_path / "catch.pt").psi.shape == (1, 6)
    assert "catch, 16," in capsys.readouterr().out
    for wrong, sentence in (
        (["--format", "onx"], "Did you mean 'onnx'?"),
        (["--component", "4"], "component is 4, but must lie between 1 and 3."),
    ):
        assert main(["export", str(catch.path), *wrong]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["export", str(own.path)]) == 2 and not list(own.path.glob("agent.*"))
    assert "--allow-code" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_torso_that_cannot_be_traced_is_refused(catch, tmp_path):
    from own_code import Hesitant

    agent = catch.agent()
    torso = agent.networks[0].torso
    torso.body, torso.last = torch.nn.Sequential(Hesitant(50)), torch.nn.Linear(4, torso.units)
    with pytest.raises(UserError, match="it cannot be exported"):
        agent.export(tmp_path / "agent.pt")
    assert not (tmp_path / "agent.pt").exists()
