"""agent.act takes what Gymnasium gives, and refuses what it cannot mean."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import lbc
from lbc.errors import UserError


def test_a_plain_loop_and_both_orders_of_channels(own):
    """The same episode, seen channels last and channels first, brings the same actions."""
    from own_code import Lights

    agent, actions = own.agent(), []
    for first in (False, True):
        game, taken = Lights(), []
        observation, _ = game.reset(seed=3)
        state, reward, over = None, 0.0, False
        while not over:
            seen = observation.transpose(2, 0, 1) if first else observation
            action, state = agent.act(seen, state, reward, seed=7)
            observation, reward, over, _, _ = game.step(action)
            taken.append(action)
        actions.append(taken)
    assert actions[0] == actions[1] and len(actions[0]) == 5
    assert repr(agent).startswith("<Agent for own_code:Lights: 3 policies, 4")


def test_a_number_is_a_discrete_state(tmp_path):
    out = tmp_path / "run"
    result = lbc.train("cartpole", env="CliffWalking-v1", frames=16, out=out, show=False, run={"threads": 1})
    agent = result.agent()
    environment = gymnasium.make("CliffWalking-v1")
    observation, _ = environment.reset(seed=0)
    one_hot = np.eye(48, dtype=np.float32)[observation]
    assert agent.act(observation, seed=1)[0] == agent.act(one_hot, seed=1)[0]
    with pytest.raises(UserError, match="shape"):
        agent.act(48)


def test_psi_chooses_the_behavior(catch):
    """tau = 0 plays evenly; a psi of another size is refused."""
    agent = catch.agent()
    frame = np.zeros(agent.spec.frame_shape, np.float32)
    even = np.array([0.0, 0.0, 0.0, 0.2, 0.3, 0.5])
    taken = np.bincount([agent.act(frame, psi=even, seed=seed)[0] for seed in range(300)], minlength=3)
    assert taken.min() > 70, "100 each are expected"
    with pytest.raises(UserError, match=r"psi has shape \(2,\), but must have \(6,\)"):
        agent.act(frame, psi=[1.0, 1.0])
