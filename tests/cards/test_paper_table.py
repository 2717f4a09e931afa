"""The card ``atari`` is the paper's table of hyper-parameters, value by value."""

import dataclasses

import pytest

from lbc.cards import resolve
from lbc.config import Config

TABLE = {
    "environment": {
        "image_size": 84,
        "frame_stack": 4,
        "action_repeat": 4,
        "max_noops": 30,
        "full_action_space": True,
        "sticky_actions": 0.0,
        "max_episode_frames": 108_000,
        "life_information": False,
    },
    "population": {"discounts": (0.997, 0.999, 0.99), "shapings": ("sqrt", "log", "tanh")},
    "model": {"lstm_units": 256, "auxiliary_forward": True, "auxiliary_inverse": True},
    "behavior": {
        "entropy_control": "boltzmann",
        "distillation": "mixture",
        "tau_accuracy": 0.2,
        "omega_accuracy": 0.1,
    },
    "controller": {
        "kind": "voting",
        "population": 7,
        "ucb_c_low": 0.5,
        "ucb_c_high": 1.5,
        "top_d": 4,
        "replacement_interval": 50,
    },
    "target": {"clip_rho": 1.05, "clip_c": 1.05, "bootstrap": True},
    "buffer": {
        "burn_in": 40,
        "replay": 2,
        "sequence_length": 80,
        "burn_in_stored_state": True,
        "batch_size": 64,
    },
    "learner": {
        "v_loss_scaling": 1.0,
        "q_loss_scaling": 5.0,
        "pi_loss_scaling": 5.0,
        "weight_decay": 0.01,
        "weight_decay_schedule": "linear",
        "learning_rate": 5.3e-4,
        "learning_rate_schedule": "linear",
        "warmup_steps": 4000,
        "optimizer": "adamw",
        "adam_beta1": 0.9,
        "adam_beta2": 0.98,
        "adam_epsilon": 1e-6,
        "clip_norm": 50.0,
        "push_interval": 25,
    },
    "actor": {"pull_interval": 64},
    "run": {"frames": 1_000_000_000, "score_window": 32},
}


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [(section, key, value) for section, values in TABLE.items() for key, value in values.items()],
)
def test_atari_equals_the_table(section: str, key: str, value: object) -> None:
    assert getattr(getattr(resolve("atari"), section), key) == value


def test_atari_changes_nothing_but_the_game_and_the_reading_of_the_target() -> None:
    atari, default = resolve("atari"), Config()
    assert atari.environment.id.startswith("ALE/")
    environment = dataclasses.replace(atari.environment, id=default.environment.id)
    target = dataclasses.replace(default.target, scale_free_gain=0.1, kappa=30.0)
    assert dataclasses.replace(atari, environment=environment) == dataclasses.replace(default, target=target)
