"""The behavior: population H, entropy control f_tau, distillation g_omega, the space Psi."""

from lbc.behavior.distillation import mixture, responsibility
from lbc.behavior.entropy_control import ENTROPY_CONTROLS, boltzmann, epsilon_greedy
from lbc.behavior.mapping import BehaviorMapping, build_mapping
from lbc.behavior.population import SHAPINGS, PolicyHyperParameters, build_population
from lbc.behavior.space import BehaviorSpace, Dimension, build_space, normalise
from lbc.behavior.target import TargetPolicy, build_target

__all__ = [
    "ENTROPY_CONTROLS",
    "SHAPINGS",
    "BehaviorMapping",
    "BehaviorSpace",
    "Dimension",
    "PolicyHyperParameters",
    "TargetPolicy",
    "boltzmann",
    "build_mapping",
    "build_population",
    "build_space",
    "build_target",
    "epsilon_greedy",
    "mixture",
    "normalise",
    "responsibility",
]
