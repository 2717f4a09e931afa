"""The actor: what it stores is what it did, and the controller hears of every episode once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from lbc.actor import Actor, Mind
from lbc.behavior import TargetPolicy, build_mapping, build_population
from lbc.buffer import SequenceBuffer
from lbc.config import BehaviorConfig, BufferConfig, ModelConfig, PopulationConfig, TargetConfig
from lbc.errors import TrainingError
from lbc.models import PolicyNetwork, taken
from lbc.runtime import SerialRun
from lbc.types import Batch
from tests.actor.scripted import Scripted
from tests.builders import catch_config

POPULATION = build_population(PopulationConfig())
MAPPING = build_mapping(BehaviorConfig(), 3)


class Notebook:
    """A controller that draws random behaviors and writes down what it hears."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.log: list[tuple[str, int, float]] = []

    def start(self, index: int) -> np.ndarray:
        self.log.append(("start", index, 0.0))
        return np.concatenate([self.rng.uniform(0.0, 20.0, 3), self.rng.dirichlet(np.ones(3))])

    def end(self, index: int, score: float | None) -> None:
        self.log.append(("end", index, score))


def networks(spec, lstm_units: int = 6) -> list[PolicyNetwork]:
    torch.manual_seed(0)
    torso = "minatar" if len(spec.frame_shape) == 3 else "mlp"
    model = ModelConfig(torso=torso, torso_units=8, lstm_units=lstm_units, head_units=5)
    nets = [PolicyNetwork(spec, model, TargetConfig("decoupled")).double() for _ in range(3)]
    for net in nets:
        torch.nn.init.normal_(net.logits[-1].weight)  # policies that say something
    return nets


def play(environment: Scripted, controller=None, seed: int = 0, watched: int = 0, mapping=MAPPING) -> Actor:
    mind = Mind(
        environment.spec,
        environment.num_envs,
        networks(environment.spec),
        POPULATION,
        mapping,
        TargetPolicy(1.0, None),
        seed,
        torch.device("cpu"),
        torch.float64,
        watched=watched,
    )
    return Actor(environment, mind, controller or Notebook(), seed)


@torch.no_grad()
def recomputed_log_mu(batch: Batch, nets: list[PolicyNetwork], population=POPULATION, mapping=MAPPING):
    """mu of every row of a batch, burn-in included, from the stored states and the same weights."""
    phi = torch.stack(
        [
            net(batch.observation, batch.first, batch.previous_action, p.shape(batch.reward), state).phi
            for net, p, state in zip(nets, population, batch.state, strict=True)
        ]
    )
    return mapping.log_mu(phi, batch.psi)


@pytest.mark.parametrize("image, frame_stack", [(True, 1), (True, 4), (False, 1), (False, 3)])
@pytest.mark.parametrize("burn_in", [0, 3, 9])
def test_stored_probabilities_can_be_recomputed_from_what_is_stored(image, frame_stack, burn_in):
    """Through frame stacks, resets, previous actions, shaped rewards and recurrent states alike."""
    environment = Scripted(image=image, frame_stack=frame_stack)
    actor = play(environment)
    buffer = SequenceBuffer(
        BufferConfig(sequence_length=5, burn_in=burn_in, batch_size=2, replay=1),
        environment.spec,
        environment.num_envs,
        psi_size=6,
        state_shape=(3, 6),
        rng=np.random.default_rng(0),
        device=torch.device("cpu"),
        dtype=torch.float64,
    )
    checked = 0
    for _ in range(60):
        step = actor.step()
        buffer.append(step.row, step.state)
        while buffer.ready():
            batch = buffer.sample()
            log_mu = recomputed_log_mu(batch, actor.mind.networks)
            torch.testing.assert_close(log_mu, batch.log_mu, rtol=1e-9, atol=1e-9)
            checked += 1
    assert checked > 10


def test_a_whole_run_stores_what_its_weights_say():
    """A real run on Catch with LSTM: actors keep version 0 (no push), so every row can be recomputed."""
    run = SerialRun(catch_config(learner={"push_interval": 10_000}))
    e = run.experiment
    for _ in range(60):
        run.step()
        if run.last_batch is not None:
            log_mu = recomputed_log_mu(run.last_batch, e.actor_networks, e.population, e.mapping)
            torch.testing.assert_close(log_mu, run.last_batch.log_mu, rtol=1e-9, atol=1e-9)
    assert e.learners[0].updates > 10
    for actor_net, learner in zip(e.actor_networks, e.learners, strict=True):
        pairs = zip(actor_net.parameters(), learner.network.parameters(), strict=True)
        assert any(not torch.equal(p, q) for p, q in pairs), "only the learners moved on"


def test_rows_hold_the_environment_s_answers_and_the_actions_sent():
    environment = Scripted()
    actor = play(environment)
    rows = [actor.step().row for _ in range(30)]
    for row, sent in zip(rows, environment.actions, strict=True):
        np.testing.assert_array_equal(row.action, sent)
    again = Scripted()
    seen = again.reset(0)
    for row, sent in zip(rows, environment.actions, strict=True):
        np.testing.assert_array_equal(row.frame, seen.frame)
        np.testing.assert_array_equal(row.reward, seen.reward)
        np.testing.assert_array_equal(row.first, seen.first)
        np.testing.assert_array_equal(row.terminated, seen.terminated)
        seen = again.step(sent)


def test_episodes_are_scored_once_and_psi_lasts_for_an_episode():
    """Copy e plays 3 + e steps for 1 + 2 + .. points; every second episode of a copy ends by the clock."""
    environment, notebook = Scripted(num_envs=2), Notebook()
    actor = play(environment, notebook)
    steps = [actor.step() for _ in range(41)]
    ends = [end for step in steps for end in step.ended]
    scores = {0: 6.0, 1: 10.0}
    for e in range(2):
        mine = [end for end in ends if end.index == e]
        assert [end.score for end in mine] == [scores[e]] * len(mine)
        assert [end.steps for end in mine] == [3 + e] * len(mine)
        assert [end.truncated for end in mine] == [bool(n % 2) for n in range(len(mine))]
        heard = [(what, score) for what, index, score in notebook.log if index == e]
        assert heard[:3] == [("start", 0.0), ("end", scores[e]), ("start", 0.0)]
        assert all(a[0] != b[0] for a, b in itertools.pairwise(heard)), "start and end in turn"
        assert len(mine) == sum(what == "end" for what, _ in heard)
        for before, after in itertools.pairwise(steps):
            same = bool((before.row.psi[e] == after.row.psi[e]).all())
            assert same == (not bool(after.row.first[e]))


def test_a_final_observation_is_a_row_whose_action_is_ignored():
    """Of copy 0 (3 steps): rows 3 and 4 of the run are the final observation and the next start."""
    actor = play(Scripted(num_envs=1))
    steps = [actor.step() for _ in range(6)]
    assert [bool(s.row.terminated[0]) for s in steps] == [False, False, False, True, False, False]
    assert [bool(s.row.first[0]) for s in steps] == [True, False, False, False, True, False]
    assert [math.isnan(s.entropy) for s in steps] == [False, False, False, True, False, False], "nobody acted"
    assert actor.episode_ages().tolist() == [1]


def test_a_lost_life_ends_the_value_and_not_the_episode():
    """Of copies of 5 and 6 steps, each of which loses a life at its second."""
    notebook = Notebook()
    actor = play(Scripted(num_envs=2, shortest=5, lives=True), notebook)
    steps = [actor.step() for _ in range(6)]
    assert [bool(s.row.terminated[0]) for s in steps] == [False, False, True, False, False, True]
    assert [bool(s.row.first[0]) for s in steps] == [True] + 5 * [False]
    assert [end.steps for s in steps for end in s.ended] == [5]
    assert [what for what, index, _ in notebook.log if index == 0] == ["start", "end"]
    assert not any(math.isnan(s.entropy) for s in steps), "who lost a life acts on"


def test_states_are_those_before_the_step_and_reset_with_an_episode():
    actor = play(Scripted(num_envs=1))
    steps = [actor.step() for _ in range(6)]
    assert not steps[0].state.any()
    assert steps[1].state.any()
    fresh = play(Scripted(num_envs=1)).mind.networks
    row = steps[4].row  # first of the second episode: the state before it no longer counts
    with torch.no_grad():
        phi = torch.stack(
            [
                net(
                    row.frame.unsqueeze(0),
                    row.first.unsqueeze(0),
                    row.action.unsqueeze(0),
                    row.reward.unsqueeze(0),
                    net.initial_state(1),
                ).phi[0]
                for net in fresh
            ]
        )
    torch.testing.assert_close(MAPPING.log_mu(phi, row.psi), row.log_mu)


def test_entropy_and_responsibility_are_means_over_those_who_acted():
    actor = play(Scripted())
    for _ in range(20):
        step = actor.step()
        acted = ~(step.seen.terminated | step.seen.truncated)
        mu = step.row.log_mu.exp()
        entropy = -(mu * step.row.log_mu).sum(-1).numpy()
        assert step.entropy == pytest.approx(entropy[acted].mean())
        assert step.responsibility.sum() == pytest.approx(1.0)


def test_values_of_the_watched_environments_are_reported():
    environment = Scripted()
    actor = play(environment, watched=2)
    step = actor.step()
    row = step.row
    with torch.no_grad():
        expected = [
            net(row.frame[None], row.first[None], row.action[None], row.reward[None], state).value[0, :2]
            for net, state in zip(actor.mind.networks, step.state, strict=True)
        ]
    np.testing.assert_allclose(step.value, torch.stack(expected))
    assert play(Scripted()).step().value.size == 0


class Steady(Notebook):
    """One behavior for all."""

    def __init__(self, psi: list[float]) -> None:
        super().__init__()
        self.psi = np.array(psi)

    def start(self, index: int) -> np.ndarray:
        return self.psi


def say(nets: list[PolicyNetwork], phi: list[list[float]]) -> None:
    """Whatever is seen, policy i prefers phi[i]."""
    for net, preferences in zip(nets, phi, strict=True):
        torch.nn.init.zeros_(net.logits[-1].weight)
        net.logits[-1].bias.data[:] = torch.tensor(preferences)


def test_actions_follow_mu():
    """Chi-square of 20,000 actions of 1,000 environments; the bound is the 0.999 quantile."""
    actor = play(Scripted(num_envs=1000, image=False), Steady([1.0, 2.0, 10.0, 0.2, 0.5, 0.3]))
    say(actor.mind.networks, [[0.5, 0.0, -0.5], [-1.0, 1.0, 0.0], [0.1, 0.2, 0.3]])
    rows = [actor.step().row for _ in range(20)]
    mu = rows[0].log_mu[0].exp().numpy()
    counts = np.bincount(np.concatenate([row.action for row in rows]), minlength=3)
    assert ((counts - 20_000 * mu) ** 2 / (20_000 * mu)).sum() < stats.chi2.ppf(0.999, df=2)


@pytest.mark.parametrize("best", [0, 1, 2])
@pytest.mark.parametrize("draw", [None, 0.0, 1.0 - 2.0**-53])
def test_impossible_actions_are_never_played(best, draw, monkeypatch):
    """Epsilon-greedy with epsilon 0: the others have log-probability minus infinity, and all goes on.

    Also at the ends of what a random number can be.
    """
    if draw is not None:
        monkeypatch.setattr(torch, "rand", lambda *shape, dtype, **_: torch.full(shape, draw, dtype=dtype))
    mapping = build_mapping(BehaviorConfig(entropy_control="epsilon_greedy", tau_high=1.0), 3)
    environment = Scripted(num_envs=200, image=False)
    actor = play(environment, Steady([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]), mapping=mapping)
    say(actor.mind.networks, [[float(a == best) for a in range(3)]] * 3)
    for _ in range(3):
        step = actor.step()
        assert (step.row.action == best).all()
        assert (taken(step.row.log_mu, step.row.action) == 0.0).all()
        assert step.entropy == 0.0


def test_the_same_seed_plays_the_same_actions():
    def actions(seed: int) -> np.ndarray:
        environment = Scripted()
        actor = play(environment, seed=seed)
        for _ in range(20):
            actor.step()
        return np.array(environment.actions)

    np.testing.assert_array_equal(actions(3), actions(3))
    assert (actions(3) != actions(4)).any()


def test_a_behavior_that_is_not_a_number_ends_the_run():
    """The actor plays on with legal actions; the next learner that meets its rows refuses them."""
    run = SerialRun(catch_config(actor={"pull_interval": 10_000}))
    run.step()
    torch.nn.init.constant_(run.experiment.actor_networks[1].logits[-1].bias, float("nan"))
    with pytest.raises(TrainingError, match="non-finite"):
        for _ in range(40):
            run.step()
    for learner in run.experiment.learners:
        assert all(bool(torch.isfinite(p).all()) for p in learner.network.parameters())


def test_what_every_target_policy_thought_of_the_action_is_stored():
    """softmax(Phi_i) of the action, recomputed from weights and states, whatever mu was."""
    actor = play(Scripted(num_envs=3))
    for _ in range(5):
        before = [x.clone() for x in actor.mind._state]
        previous = actor.mind._action.clone()
        step = actor.step()
        for i, (net, policy) in enumerate(zip(actor.mind.networks, POPULATION, strict=True)):
            rows = (step.row.first, previous, policy.shape(step.row.reward))
            with torch.no_grad():
                out = net(actor.mind.seen, *(x[None] for x in rows), before[i])
            expected = taken(torch.log_softmax(out.phi[0], -1), step.row.action)
            torch.testing.assert_close(step.row.log_pi[:, i], expected)
