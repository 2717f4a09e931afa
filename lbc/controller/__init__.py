"""Who chooses psi: bandits that vote, a single UCB, chance, a rule."""

from lbc.controller.bandits import BanditPopulation, Vote, ucb_scores
from lbc.controller.controllers import (
    BanditController,
    Choice,
    Controller,
    RandomController,
    RuleController,
    build_controller,
)
from lbc.controller.meta import MetaController, choose_scope

__all__ = [
    "BanditController",
    "BanditPopulation",
    "Choice",
    "Controller",
    "MetaController",
    "RandomController",
    "RuleController",
    "Vote",
    "build_controller",
    "choose_scope",
    "ucb_scores",
]
