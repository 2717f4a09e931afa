import itertools

import pytest

from lbc.behavior.population import build_population
from lbc.cards import available, resolve
from lbc.errors import UserError

PRESETS = [card.name for card in available() if card.kind == "preset"]
OVERLAYS = [card.name for card in available() if card.kind == "overlay"]


def test_the_promised_cards_exist() -> None:
    assert {"catch", "deepsea", "cartpole", "minatar", "atari", "atari-laptop"} <= set(PRESETS)
    ablations = {"reduced-h", "reduced-h-psi", "random-selection", "no-ucb", "rule-based"}
    assert ablations <= set(OVERLAYS)
    assert all(card.description for card in available())


@pytest.mark.parametrize(("preset", "overlay"), list(itertools.product(PRESETS, OVERLAYS)))
def test_every_overlay_fits_every_preset(preset: str, overlay: str) -> None:
    alone, combined = resolve(preset), resolve(f"{preset}+{overlay}")
    if not (overlay == "scale-free" and preset != "atari"):  # the presets' own reading
        assert combined != alone
    assert combined.environment == alone.environment


@pytest.mark.parametrize("overlay", ["one-policy", "reduced-h", "reduced-h-psi"])
def test_what_is_left_of_a_population_is_its_first_policy(overlay: str) -> None:
    for preset in PRESETS:
        alone, (left,) = resolve(preset), build_population(resolve(f"{preset}+{overlay}").population)
        assert left == build_population(alone.population)[0]


def test_later_cards_win_and_overrides_win_over_cards() -> None:
    assert resolve("catch+rule-based+random-selection").controller.kind == "random"
    assert resolve("catch+random-selection+rule-based").controller.kind == "rule"
    assert resolve("catch+rule-based", ["controller.kind=ucb"]).controller.kind == "ucb"
    assert resolve("catch", ["run.seed=3", "run.seed=4"]).run.seed == 4


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("learner.learning_rate=1", "learner", "learning_rate", 1.0),
        ("run.frames=2e6", "run", "frames", 2_000_000),
        ("run.frames=2_000", "run", "frames", 2000),
        ("model.torso=mlp", "model", "torso", "mlp"),
        ('model.torso="mlp"', "model", "torso", "mlp"),
        ("target.bootstrap=false", "target", "bootstrap", False),
        ("behavior.components=[0, 0]", "behavior", "components", (0, 0)),
        ("population.discounts=[1, 0.5, 0.9]", "population", "discounts", (1.0, 0.5, 0.9)),
        ("environment.id=ALE/Pong-v5", "environment", "id", "ALE/Pong-v5"),
    ],
)
def test_an_override_becomes_the_type_of_its_field(
    override: str, section: str, key: str, value: object
) -> None:
    found = getattr(getattr(resolve("catch", [override]), section), key)
    assert found == value
    assert type(found) is type(value)


def test_options_are_config_values() -> None:
    config = resolve("catch", env="deepsea", minutes=2.5, seed=9)
    assert (config.environment.id, config.run.minutes, config.run.seed) == ("deepsea", 2.5, 9)


@pytest.mark.parametrize(
    ("preset", "overrides", "sentence"),
    [
        ("minatr", [], "Did you mean 'minatar'?"),
        ("no-ucb", [], "is an overlay"),
        ("catch+atari", [], "both presets"),
        ("catch+no-ubc", [], "Did you mean 'no-ucb'?"),
        ("missing.toml", [], "no card file 'missing.toml'"),
        ("catch", ["lerner.clip_norm=1"], "Did you mean 'learner'?"),
        ("catch", ["learner.clip_nrm=1"], "Did you mean 'clip_norm'?"),
        ("catch", ["learner.replay=1"], "Did you mean 'buffer.replay'?"),
        ("catch", ["learner.clip_norm"], "section.key=value"),
        ("catch", ["clip_norm=1"], "section.key=value"),
        ("catch", ["learner.clip_norm=-1"], "must be positive"),
        ("catch", ["buffer.replay=1.5"], "must be a whole number"),
        ("catch", ["buffer.replay=true"], "must be a whole number"),
        ("catch", ["target.bootstrap=1"], "must be true or false"),
        ("catch", ["model.torso=3"], "must be a string"),
        ("catch", ["population.discounts=0.9"], "must be a list of numbers"),
        ("catch", ["population.discounts=[true]"], "must be a list of numbers"),
        ("catch", ["run.frames=9", "run.minutes=1"], "contradict"),
        ("catch", ["learner.clip_norm=1\nadam_beta1=0.5"], "must be a number"),
    ],
)
def test_what_does_not_fit_is_said(preset: str, overrides: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve(preset, overrides)
    assert sentence in str(caught.value)


def test_options_that_contradict() -> None:
    with pytest.raises(UserError, match="--frames and --minutes contradict"):
        resolve("catch", frames=5, minutes=1.0)
    with pytest.raises(UserError, match=r"--seed and --set run\.seed contradict"):
        resolve("catch", ["run.seed=1"], seed=2)
    with pytest.raises(UserError, match="contradict"):
        resolve("catch", ["run.minutes=1"], frames=2)
    with pytest.raises(UserError, match="--minutes is 0, but must be positive"):
        resolve("catch", minutes=0.0)


def test_frames_replace_a_cards_minutes(tmp_path) -> None:
    card = tmp_path / "timed.toml"
    card.write_text("[run]\nminutes = 3.0\n")
    assert resolve(str(card)).run.minutes == 3.0
    assert resolve(str(card), frames=10).run.minutes == 0.0
    assert resolve(str(card), ["run.frames=10"]).run.minutes == 0.0


def test_a_card_file_is_checked_like_anything_else(tmp_path) -> None:
    card = tmp_path / "own.toml"
    for text, sentence in [
        ("[run]\nsede = 3\n", "Did you mean 'seed'?"),
        ("seed = 3\n", "outside of any config section"),
        ("[run\n", "not valid TOML"),
        ('kind = "overlap"\n', "of kind 'overlap'"),
        ("[rum]\n", "Did you mean 'run'?"),
    ]:
        card.write_text(text)
        with pytest.raises(UserError) as caught:
            resolve(str(card))
        assert sentence in str(caught.value)
