"""Who chooses psi: what is counted when, who is served by whom, and the members without memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lbc.behavior import build_space
from lbc.config import BehaviorConfig, ControllerConfig
from lbc.controller import MetaController, build_controller, choose_scope

SPACE = build_space(BehaviorConfig(), 3)


def controller(**options):
    return build_controller(ControllerConfig(**options), SPACE, np.random.default_rng(0), num_envs=20)


def meta(num_envs=6, scope="shared", seed=0, space=SPACE, **options) -> MetaController:
    extra = {k: options.pop(k) for k in ("envs_per_actor", "on_policy_envs") if k in options}
    return MetaController(
        ControllerConfig(**options), space, num_envs, np.random.default_rng(seed), scope, **extra
    )


def pulls(m: MetaController) -> list[float]:
    """Episodes that each controller has heard of, by its first dimension."""
    return [float(c.bandits.counts[0, 0].sum()) for c in m.controllers]


def test_a_choice_is_drawn_inside_the_regions_that_won():
    member = controller()
    for _ in range(30):
        choice = member.choose(0)
        for m in range(3):
            dimension, region = SPACE.dimensions[m], choice.regions[m]
            assert dimension.low[region, 0] - 1e-12 <= np.log1p(choice.psi[m]) <= dimension.high[region, 0]
        assert choice.psi[3:].sum() == pytest.approx(1.0)
        assert 0.0 <= choice.votes_entropy <= np.log(20)
        member.learn(choice, 1.0)


def test_an_episode_counts_once_and_a_lost_one_not_at_all():
    member = controller()
    choice = member.choose(0)
    member.learn(choice, 3.0)
    assert member.bandits.counts.sum() == 6 * 7  # every bandit of every dimension
    member.learn(member.choose(0), None)
    assert member.bandits.counts.sum() == 6 * 7
    assert member.bandits.episodes == 1


@pytest.mark.parametrize("score", [2.0, None])
def test_pulls_in_flight_are_counted_from_the_start_and_taken_back_at_the_end(score):
    member = controller(count_pulls="start")
    choices = [member.choose(0) for _ in range(5)]
    assert member.bandits.in_flight.sum() == 5 * 6
    for choice in choices:
        for k, region in enumerate(choice.regions):
            assert member.bandits.in_flight[k, region] > 0
    for choice in choices:
        member.learn(choice, score)
    assert not member.bandits.in_flight.any()
    assert member.bandits.counts.sum() == (0 if score is None else 5 * 42)


def test_pulls_in_flight_spread_simultaneous_choices():
    """Twenty environments ask at once, and only region 4 is untried: all go there unless flights count."""

    def distinct(count_pulls: str) -> int:
        member = controller(count_pulls=count_pulls, kind="ucb", ucb_c_low=1.0, ucb_c_high=1.0)
        member.bandits.counts += 1.0
        member.bandits.counts[..., 4] = 0.0
        return len({int(member.choose(0).regions[0]) for _ in range(20)})

    assert distinct("end") == 1
    assert distinct("start") > 10


def test_counting_at_the_end_leaves_nothing_in_flight():
    member = controller(count_pulls="end")
    member.choose(0)
    assert not member.bandits.in_flight.any()


def test_credit_by_omega_weighs_taus_and_leaves_omegas():
    member = controller(credit="omega")
    choice = member.choose(0)
    member.learn(choice, 10.0)
    credited = member.bandits.counts[:, 0].sum(-1)  # [K] of the first bandit
    np.testing.assert_allclose(credited[:3], choice.psi[3:])
    np.testing.assert_allclose(credited[3:], 1.0)


def test_a_single_ucb_is_a_population_of_one():
    member = controller(kind="ucb", replacement_interval=1)
    assert member.bandits.counts.shape == (6, 1, 20)
    for _ in range(10):
        member.learn(member.choose(0), 1.0)
    assert member.bandits.counts.sum() == 60, "a single bandit is never re-created"
    assert member.choose(0).votes_entropy == 0.0


def test_favourite_is_the_centre_of_the_best_mean():
    """Region 7 of tau_1 has the best mean; region 3 a better one, but from one pull in two hundred."""
    member = controller(replacement_interval=10_000)
    zeros = np.zeros(6, dtype=int)
    for region, score, times in [(0, 0.0, 100), (7, 1.0, 99), (3, 50.0, 1)]:
        for _ in range(times):
            member.bandits.update(np.array([region, *zeros[1:]]), score, np.ones(6))
    assert np.log1p(member.favourite()[0]) == pytest.approx(0.2 * 7 + 0.1)
    assert member.favourite()[3:].sum() == pytest.approx(1.0)


def test_favourite_before_any_episode_is_a_behavior():
    for kind in ("voting", "ucb", "random", "rule"):
        psi = controller(kind=kind).favourite()
        assert psi.shape == (6,) and psi[3:].sum() == pytest.approx(1.0)


def test_random_regions_are_uniform():
    """Chi-square of 4,000 choices over the 20 regions of tau_1; 0.999 quantile.  Nothing is learned."""
    member = controller(kind="random")
    counts = np.zeros(20)
    for _ in range(4000):
        choice = member.choose(0)
        counts[choice.regions[0]] += 1
        member.learn(choice, 100.0 * choice.regions[0])
    assert ((counts - 200) ** 2 / 200).sum() < stats.chi2.ppf(0.999, df=19)
    assert member.state() == {}


def test_the_rule_gives_equal_weights_and_a_tau_of_its_own_to_each_environment():
    member = controller(kind="rule")
    taus = []
    for index in range(20):
        choice = member.choose(index)
        np.testing.assert_allclose(choice.psi[3:], 1 / 3)
        assert len(set(choice.psi[:3])) == 1, "one tau for all three policies"
        np.testing.assert_array_equal(member.choose(index).psi, choice.psi)
        taus.append(np.log1p(choice.psi[0]))
    np.testing.assert_allclose(np.sort(taus), 0.1 + 0.2 * np.arange(20))


def test_the_rule_gives_equal_weights_on_any_grid():
    for options in ({"omega_grid": "simplex"}, {"distillation": "selection"}):
        space = build_space(BehaviorConfig(**options), 3)
        member = build_controller(ControllerConfig(kind="rule"), space, np.random.default_rng(0), num_envs=20)
        for index in range(5):
            np.testing.assert_allclose(member.choose(index).psi[3:], 1 / 3)


@pytest.mark.parametrize(
    "scope, envs_per_actor, owners",
    [("shared", 0, [0] * 6), ("environment", 0, [0, 1, 2, 3, 4, 5]), ("actor", 4, [0, 0, 0, 0, 1, 1])],
)
def test_scope_says_which_controller_hears_an_episode(scope, envs_per_actor, owners):
    m = meta(scope=scope, envs_per_actor=envs_per_actor)
    assert len(m.controllers) == max(owners) + 1
    heard = [0] * len(m.controllers)
    for index, owner in enumerate(owners):
        m.start(index)
        m.end(index, 1.0)
        heard[owner] += 1
        assert pulls(m) == heard


def test_controllers_of_different_environments_draw_differently():
    m = meta(scope="environment")
    psis = np.array([m.start(index) for index in range(6)])
    assert len(np.unique(psis, axis=0)) == 6


def test_an_end_is_credited_to_the_regions_that_were_played():
    m = meta(num_envs=3)
    psis = [m.start(index) for index in range(3)]
    m.end(1, 5.0)
    counts = m.controllers[0].bandits.counts[0, 0]
    assert counts.sum() == 1
    assert counts.argmax() == int(np.log1p(psis[1][0]) / 0.2)
    m.end(1, 5.0)
    assert counts.sum() == 1, "an episode that was already reported is not reported again"
    m.end(0, None)
    assert counts.sum() == 1


def test_near_on_policy_environments_play_one_policy_each_and_are_not_reported():
    m = meta(num_envs=5, on_policy_envs=4)
    for index in range(4):
        psi = m.start(index)
        np.testing.assert_array_equal(psi[:3], 1.0)
        np.testing.assert_array_equal(psi[3:], np.eye(3)[index % 3])
        m.end(index, 100.0)
    assert pulls(m) == [0.0]
    m.start(4)
    m.end(4, 1.0)
    assert pulls(m) == [1.0]


def test_a_restored_meta_controller_makes_the_same_choices():
    def play(m: MetaController, rounds: int) -> list[np.ndarray]:
        psis = []
        for _ in range(rounds):
            for index in range(4):
                psis.append(m.start(index))
                m.end(index, float(psis[-1][0] - psis[-1][4]))
        return psis

    original = meta(num_envs=4, scope="environment", replacement_interval=7)
    play(original, 30)
    copy = meta(num_envs=4, scope="environment", seed=77, replacement_interval=7)
    copy.restore(original.state())
    for mine, theirs in zip(copy.controllers, original.controllers, strict=True):
        mine._rng.bit_generator.state = theirs._rng.bit_generator.state
    np.testing.assert_array_equal(play(copy, 30), play(original, 30))


def test_the_state_is_plain_arrays_that_survive_a_file(tmp_path):
    original = meta(scope="environment")
    for index in range(6):
        original.start(index)
        original.end(index, float(index))
    np.savez(tmp_path / "state.npz", **original.state())
    copy = meta(scope="environment", seed=5)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        copy.restore(dict(state))
    for name, array in original.state().items():
        np.testing.assert_array_equal(copy.state()[name], array)
    np.testing.assert_array_equal(copy.favourite(), original.favourite())


def test_diagnostics_count_choices_since_the_last_report():
    m = meta()
    played = []
    for index in range(6):
        played.append(int(np.log1p(m.start(index)[0]) / 0.2))
        m.end(index, float(index % 2))
    report = m.diagnostics()
    assert [entry["name"] for entry in report["dimensions"]] == [d.name for d in SPACE.dimensions]
    for entry, count in zip(report["dimensions"], SPACE.regions, strict=True):
        assert sum(entry["chosen"]) == 6 and len(entry["chosen"]) == count
        assert len(entry["mean_return"]) == count
    tau_1 = report["dimensions"][0]
    assert tau_1["chosen"] == np.bincount(played, minlength=20).tolist()
    for region, mean in enumerate(tau_1["mean_return"]):
        scores = [float(index % 2) for index in range(6) if played[index] == region]
        assert mean == (pytest.approx(np.mean(scores)) if scores else None)
    assert 0.0 < report["votes_entropy"] <= np.log(20)
    assert report["bandit_age"] == 6.0
    again = m.diagnostics()
    assert sum(again["dimensions"][0]["chosen"]) == 0 and again["votes_entropy"] is None
    assert meta(kind="random").diagnostics().keys() == {"dimensions"}


def test_signal_to_noise_tells_a_difference_from_chance():
    """Regions 0 and 1 of tau_1, 50 pulls each, noise of std 1: means 3 apart stand out, equal ones do not.

    Std of the two means over the standard error of one: 1.5 / (1 / sqrt 50) = 10.6.
    """
    rng = np.random.default_rng(0)
    signals = []
    for gap in (0.0, 3.0):
        m = meta(replacement_interval=10_000)
        for n in range(100):
            regions = np.zeros(6, dtype=int)
            regions[0] = n % 2
            m.controllers[0].bandits.update(regions, rng.normal(gap * regions[0], 1.0), np.ones(6))
        signals.append(m.diagnostics()["dimensions"][0]["signal_to_noise"])
    assert signals[0] < 3.0
    assert signals[1] == pytest.approx(10.6, rel=0.2)


def test_the_favourite_is_that_of_the_controller_with_most_experience():
    m = meta(num_envs=2, scope="environment")
    for owner, region, episodes in ((0, 3, 5), (1, 9, 30)):
        for _ in range(episodes):
            m.controllers[owner].bandits.update(np.full(6, region), 1.0, np.ones(6))
    assert np.log1p(m.favourite()[0]) == pytest.approx(0.2 * 9 + 0.1)


def test_scope_is_shared_where_a_bandit_would_see_too_little():
    assert choose_scope("auto", num_envs=10, episodes_expected=2000) == "environment"
    assert choose_scope("auto", num_envs=10, episodes_expected=1999) == "shared"
    assert choose_scope("environment", num_envs=10, episodes_expected=1) == "environment"
    assert choose_scope("shared", num_envs=1, episodes_expected=1e9) == "shared"


def test_the_whole_controller_learns_which_tau_pays():
    """Reward is high where tau_1 is large; 400 episodes of a shared controller find the upper half."""
    m = meta(num_envs=1)
    rng = np.random.default_rng(0)
    taus = []
    for _ in range(400):
        psi = m.start(0)
        taus.append(np.log1p(psi[0]))
        m.end(0, rng.normal(3.0 * taus[-1], 1.0))
    assert np.mean(taus[-100:]) > 3.0, "chance would give 2"
    assert np.log1p(m.favourite()[0]) > 3.0
