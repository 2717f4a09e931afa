"""The algorithm's values: population, model, behavior, controller, target, buffer, learner.

The defaults are the paper's table for Atari ("Hyper-Parameters for Atari Experiments"); where the
paper is silent, a comment says what the value means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lbc.config.checks import at_least, one_of, positive, require, within
from lbc.config.own_parts import is_own

MOST_REGIONS = 10_000  # of one dimension of psi


@dataclass(frozen=True)
class PopulationConfig:
    """H: one policy per entry; h_i = (discount, reward shaping)."""

    discounts: tuple[float, ...] = (0.997, 0.999, 0.99)
    shapings: tuple[str, ...] = ("sqrt", "log", "tanh")  # or clip, identity, "module:function"
    policies: int = 0  # only the first so many of them; 0: all
    entropy_scalings: tuple[float, ...] = ()  # each policy's entropy bonus; empty: the learner's for all
    first_discounts: tuple[float, ...] = ()  # at the beginning of the run; empty: `discounts` throughout
    discount_ramp: float = 0.5  # share of the run after which `discounts` are reached

    @property
    def size(self) -> int:
        return self.policies or len(self.discounts)

    def __post_init__(self) -> None:
        entries = len(self.discounts)
        require(entries >= 1, "population.discounts is empty; give at least one discount.")
        require(
            len(self.shapings) == entries,
            f"population has {entries} discounts but {len(self.shapings)} shapings; "
            "give one of each per policy.",
        )
        require(
            0 <= self.policies <= entries,
            f"population.policies is {self.policies}, but must be 0 (all) to {entries}, as many as there are "
            "discounts and shapings.",
        )
        for gamma in self.discounts:
            within("population", "discounts", gamma, 0.0, 1.0)
        within("population", "discount_ramp", self.discount_ramp, 1e-6, 1.0)
        for name, given in (
            ("entropy_scalings", self.entropy_scalings),
            ("first_discounts", self.first_discounts),
        ):
            require(
                len(given) in (0, entries),
                f"population has {entries} discounts but {len(given)} {name}; give one per policy, or none.",
            )
        for bonus in self.entropy_scalings:
            at_least("population", "entropy_scalings", bonus, 0.0)
        require(
            not self.first_discounts or max(*self.first_discounts, *self.discounts) < 1.0,
            "population.discounts must be below 1 where first_discounts lead to them: "
            "what grows is the horizon, 1 / (1 - discount).",
        )
        for gamma in self.first_discounts:
            within("population", "first_discounts", gamma, 0.0, 1.0)


@dataclass(frozen=True)
class ModelConfig:
    torso: str = "nature"  # nature | residual | impala | conv | minatar | mlp | "module:factory"
    torso_units: int = 512  # fully connected layer at the end of the torso
    lstm_units: int = 256  # 0: no recurrent core
    head_units: int = 512  # hidden layer of each head; 0: linear heads
    head_slope: float = 0.0  # of the heads' hidden units below zero; 0: ReLU
    centre_features: bool = False  # what the heads read, by its running mean; keeps their units alive
    value_head: str = "tied"  # tied: Q = Abar + sg(V) | own: Q = Abar + V_q with its own V_q
    auxiliary_forward: bool = True
    auxiliary_inverse: bool = True
    initialisation: str = "orthogonal"  # orthogonal | torch (PyTorch's default)
    centre_observations: bool = False  # subtract each pixel's mean and divide by the common spread

    def __post_init__(self) -> None:
        if not is_own(self.torso):
            one_of("model", "torso", self.torso, ("nature", "residual", "impala", "conv", "minatar", "mlp"))
        one_of("model", "value_head", self.value_head, ("tied", "own"))
        one_of("model", "initialisation", self.initialisation, ("orthogonal", "torch"))
        at_least("model", "torso_units", self.torso_units, 1)
        at_least("model", "lstm_units", self.lstm_units, 0)
        at_least("model", "head_units", self.head_units, 0)
        within("model", "head_slope", self.head_slope, 0.0, 1.0)


@dataclass(frozen=True)
class BehaviorConfig:
    """The behavior mapping F_psi and the space Psi with its regions."""

    entropy_control: str = "boltzmann"  # f_tau: boltzmann | epsilon_greedy
    distillation: str = "mixture"  # g_omega: mixture | selection
    components: tuple[int, ...] = ()  # policy behind each component; empty: one component per policy
    tau_low: float = 0.0
    tau_high: float = math.exp(4.0) - 1.0  # so that log(1 + tau) spans [0, 4]
    tau_accuracy: float = 0.2  # width of a region on the scale below
    tau_scale: str = "log"  # regions are even in log(1 + tau), or linear in tau
    omega_accuracy: float = 0.1
    omega_grid: str = "independent"  # independent: one dimension per omega_i | simplex: one joint dimension
    omega_floor: float = 0.0  # smallest share of any component
    on_policy_share: float = 0.0  # share of environments that play one policy as it is, at tau = kappa

    def __post_init__(self) -> None:
        one_of("behavior", "entropy_control", self.entropy_control, ("boltzmann", "epsilon_greedy"))
        one_of("behavior", "distillation", self.distillation, ("mixture", "selection"))
        one_of("behavior", "tau_scale", self.tau_scale, ("log", "linear"))
        one_of("behavior", "omega_grid", self.omega_grid, ("independent", "simplex"))
        at_least("behavior", "tau_low", self.tau_low, 0.0)
        at_least("behavior", "tau_high", self.tau_high, 0.0)
        require(
            self.tau_high >= self.tau_low,
            f"behavior.tau_high is {self.tau_high}, but must be at least tau_low = {self.tau_low}.",
        )
        if self.entropy_control == "epsilon_greedy":
            within("behavior", "tau_high", self.tau_high, 0.0, 1.0)  # tau is epsilon here
        positive("behavior", "tau_accuracy", self.tau_accuracy)
        scale = math.log1p if self.tau_scale == "log" else float
        regions = (scale(self.tau_high) - scale(self.tau_low)) / self.tau_accuracy
        require(
            regions <= MOST_REGIONS,
            f"behavior.tau_accuracy cuts tau into {regions:.3g} regions; more than {MOST_REGIONS} "
            "cannot all be tried.",
        )
        within("behavior", "omega_accuracy", self.omega_accuracy, 1e-3, 1.0)
        within("behavior", "on_policy_share", self.on_policy_share, 0.0, 1.0)
        within("behavior", "omega_floor", self.omega_floor, 0.0, 0.5)
        require(all(i >= 0 for i in self.components), "behavior.components must be policy numbers from 0.")


@dataclass(frozen=True)
class ControllerConfig:
    """The meta-controller that chooses psi at the start of every episode."""

    kind: str = "voting"  # voting | ucb | random | rule
    population: int = 7  # bandits per dimension
    ucb_c_low: float = 0.5
    ucb_c_high: float = 1.5
    top_d: int = 4
    replacement_interval: int = 50  # episodes of one controller between two re-creations
    scope: str = "auto"  # environment | actor | shared | auto: shared where each would see < 200 episodes
    count_pulls: str = "end"  # when a pull counts: start | end of its episode
    credit: str = "full"  # full | omega: tau_i is credited in proportion to omega_i

    def __post_init__(self) -> None:
        one_of("controller", "kind", self.kind, ("voting", "ucb", "random", "rule"))
        one_of("controller", "scope", self.scope, ("auto", "environment", "actor", "shared"))
        one_of("controller", "count_pulls", self.count_pulls, ("start", "end"))
        one_of("controller", "credit", self.credit, ("full", "omega"))
        at_least("controller", "population", self.population, 1)
        at_least("controller", "top_d", self.top_d, 1)
        at_least("controller", "replacement_interval", self.replacement_interval, 1)
        at_least("controller", "ucb_c_low", self.ucb_c_low, 0.0)
        at_least("controller", "ucb_c_high", self.ucb_c_high, 0.0)
        require(
            self.ucb_c_high >= self.ucb_c_low,
            f"controller.ucb_c_high is {self.ucb_c_high}, but must be at least ucb_c_low = {self.ucb_c_low}.",
        )


@dataclass(frozen=True)
class TargetConfig:
    """Which policy pi_i a learner learns, and how far its traces reach."""

    policy: str = "scale_free"  # printed | entropy_controlled | scale_free | decoupled
    shared: bool = False  # one target for all learners: the behavior itself, as in GDI-H3; kappa is unused
    kappa: float = 1.0  # inverse temperature of the target policy: pi = softmax(kappa Phi)
    scale_free_gain: float = 5.0  # reading 'scale_free': Phi = gain A / (running std of A over actions)
    scale_free_floor: float = 0.2  # of that std, in units of PopArt's sigma: noise must not be magnified
    clip_rho: float = 1.05
    clip_c: float = 1.05
    trace_lambda: float = 1.0  # multiplies c_t; 1 in the paper
    bootstrap: bool = True  # value of the observation behind the last step of a sequence
    kl_threshold: float = 0.0  # drop policy gradients where KL(pi_i, mu) exceeds this (LASER); 0: keep all
    trust_ratio: float = 0.0  # drop those that would move a ratio beyond 1 +- this (PPO); 0: keep all
    trust_centre: str = "behavior"  # that ratio: pi/mu, or pi over what the policy itself (policy) or all
    # policies on average (population) said when the data was made

    def __post_init__(self) -> None:
        one_of("target", "policy", self.policy, ("printed", "entropy_controlled", "scale_free", "decoupled"))
        at_least("target", "scale_free_floor", self.scale_free_floor, 0.0)
        positive("target", "kappa", self.kappa)
        positive("target", "scale_free_gain", self.scale_free_gain)
        positive("target", "clip_rho", self.clip_rho)
        positive("target", "clip_c", self.clip_c)
        within("target", "trace_lambda", self.trace_lambda, 0.0, 1.0)
        at_least("target", "kl_threshold", self.kl_threshold, 0.0)
        at_least("target", "trust_ratio", self.trust_ratio, 0.0)
        one_of("target", "trust_centre", self.trust_centre, ("behavior", "policy", "population"))


@dataclass(frozen=True)
class BufferConfig:
    sequence_length: int = 80
    burn_in: int = 40
    burn_in_stored_state: bool = True  # False: burn-in starts from zeros
    batch_size: int = 64  # sequences
    replay: int = 2  # times that every sequence is used
    reserve: int = 0  # sequences held back, so that a batch mixes old and new; 0: newest only

    def __post_init__(self) -> None:
        at_least("buffer", "sequence_length", self.sequence_length, 1)
        at_least("buffer", "burn_in", self.burn_in, 0)
        at_least("buffer", "batch_size", self.batch_size, 1)
        at_least("buffer", "replay", self.replay, 1)
        at_least("buffer", "reserve", self.reserve, 0)


@dataclass(frozen=True)
class LearnerConfig:
    v_loss_scaling: float = 1.0  # xi
    q_loss_scaling: float = 5.0  # alpha
    pi_loss_scaling: float = 5.0  # beta
    auxiliary_scaling: float = 0.1
    entropy_scaling: float = 0.0  # bonus on the target policy's entropy; none in the paper
    entropy_schedule: str = "constant"  # linear: to 0 over the run, without a warm-up | constant
    normalise_advantage: bool = False
    popart: bool = False  # values learned in units of their own spread (PopArt)
    bound_targets: bool = False  # no value beyond the largest shaped reward seen / (1 - discount)
    optimizer: str = "adamw"
    learning_rate: float = 5.3e-4
    learning_rate_schedule: str = "linear"  # linear: anneal to 0 over the run | constant
    weight_decay: float = 0.01
    weight_decay_schedule: str = "linear"
    warmup_steps: int = 4000  # of `reference_updates`; scaled to the run's budget
    reference_updates: int = 97_656  # updates of one learner in the paper's run of 1B frames
    adam_beta1: float = 0.9
    adam_beta2: float = 0.98
    adam_epsilon: float = 1e-6
    clip_norm: float = 50.0
    minibatches: int = 1  # parts of a batch, an update from each; many small ones cost a GPU little
    chunk: int = 0  # sequences differentiated at once; 0: on CUDA all, else five of Atari or more of less
    averaged_updates: int = 0  # agents play the mean of their weights over about so many; 0: the newest
    push_interval: int = 25  # d_push: learner steps between two pushes to the parameter server

    def __post_init__(self) -> None:
        one_of("learner", "optimizer", self.optimizer, ("adamw",))
        for key in ("learning_rate_schedule", "weight_decay_schedule", "entropy_schedule"):
            one_of("learner", key, getattr(self, key), ("linear", "constant"))
        for key in ("v_loss_scaling", "q_loss_scaling", "pi_loss_scaling", "auxiliary_scaling"):
            at_least("learner", key, getattr(self, key), 0.0)
        for key in ("entropy_scaling", "weight_decay", "warmup_steps"):
            at_least("learner", key, getattr(self, key), 0.0)
        for key in ("learning_rate", "adam_epsilon", "clip_norm"):
            positive("learner", key, getattr(self, key))
        within("learner", "adam_beta1", self.adam_beta1, 0.0, 0.999999)
        within("learner", "adam_beta2", self.adam_beta2, 0.0, 0.999999)
        at_least("learner", "averaged_updates", self.averaged_updates, 0)
        at_least("learner", "push_interval", self.push_interval, 1)
        at_least("learner", "minibatches", self.minibatches, 1)
        at_least("learner", "chunk", self.chunk, 0)
        require(
            self.reference_updates > self.warmup_steps,
            "learner.warmup_steps must be below learner.reference_updates.",
        )

    @property
    def warmup_fraction(self) -> float:
        """Share of the run in which the learning rate rises."""
        return self.warmup_steps / self.reference_updates
