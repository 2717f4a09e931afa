"""Assemble once: every component of a run from its configuration, whatever runtime plays it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lbc.behavior import (
    BehaviorMapping,
    BehaviorSpace,
    PolicyHyperParameters,
    TargetPolicy,
    build_mapping,
    build_population,
    build_space,
    build_target,
)
from lbc.buffer import SequenceBuffer
from lbc.config import Config
from lbc.controller import MetaController, choose_scope
from lbc.environments import make
from lbc.interfaces import VectorEnvironment
from lbc.learner import Learner
from lbc.learner.peers import Peers
from lbc.models import PolicyNetwork
from lbc.parameters import ParameterServer
from lbc.runtime.allocator import keep_freed_memory
from lbc.runtime.device import precision, select_device
from lbc.types import EnvironmentSpec

STEPS_PER_EPISODE = 1000  # a guess, only for scope 'auto' before the first episode has ended


@dataclass
class Experiment:
    """The parts of one run; a runtime connects actor, buffer and learners."""

    config: Config
    device: torch.device
    dtype: torch.dtype
    environments: tuple[VectorEnvironment, ...]  # groups of equal size that step in turns
    population: tuple[PolicyHyperParameters, ...]
    mapping: BehaviorMapping
    target: TargetPolicy
    space: BehaviorSpace
    controller: MetaController
    buffer: SequenceBuffer
    learners: list[Learner]
    server: ParameterServer
    actor_networks: list[PolicyNetwork]

    @property
    def spec(self) -> EnvironmentSpec:
        return self.environments[0].spec

    @property
    def num_envs(self) -> int:
        return sum(environment.num_envs for environment in self.environments)


def assemble(config: Config, environments: Sequence[VectorEnvironment] = ()) -> Experiment:
    """`environments`: groups that play elsewhere; by default all copies are made here, as one group."""
    device = select_device(config.run.device)
    if device.type == "cpu":
        keep_freed_memory()
    dtype, mixed = precision(config, device)
    torch.manual_seed(config.run.seed)
    buffer_rng, controller_rng = np.random.default_rng(config.run.seed).spawn(2)

    elsewhere = bool(environments)
    num_envs = config.actor.num_envs
    environments = tuple(environments) or (make(config.environment, num_envs, config.actor.stagger_steps),)
    spec = environments[0].spec
    population = build_population(config.population)
    mapping = build_mapping(config.behavior, len(population))
    target = build_target(config.target, mapping, len(population))
    space = build_space(config.behavior, len(population))
    controller = meta_controller(config, spec, controller_rng)

    def network() -> PolicyNetwork:
        return PolicyNetwork(spec, config.model, config.target, mixed).to(device, dtype)

    learners, server = [], ParameterServer()
    for policy in population:
        learner = build_learner(config, spec, policy.index, device)
        server.push(policy.index, learner.network, version=0)
        learners.append(learner)
    if config.target.shared:
        for learner in learners:
            others = {policy: network() for policy in population if policy != learner.policy}
            learner.peers = Peers(others, server)
    buffer = SequenceBuffer(
        config.buffer,
        spec,
        num_envs,
        psi_size=2 * len(mapping.components),
        state_shape=(len(population), config.model.lstm_units),
        rng=buffer_rng,
        device=device,
        dtype=dtype,
        groups=len(environments),
        staggered=elsewhere,  # play goes on while learners learn, so they should always have something to do
    )
    actor_networks = [network() for _ in population]
    return Experiment(
        config,
        device,
        dtype,
        environments,
        population,
        mapping,
        target,
        space,
        controller,
        buffer,
        learners,
        server,
        actor_networks,
    )


def build_learner(config: Config, spec: EnvironmentSpec, policy: int, device: torch.device) -> Learner:
    """The learner of one policy, by itself."""
    dtype, mixed = precision(config, device)
    population = build_population(config.population)
    target = build_target(config.target, build_mapping(config.behavior, len(population)), len(population))
    network = PolicyNetwork(spec, config.model, config.target, mixed).to(device, dtype)
    return Learner(population[policy], network, config.learner, config.target, target)


def meta_controller(config: Config, spec: EnvironmentSpec, rng: np.random.Generator) -> MetaController:
    """The meta-controller for all environments of a run."""
    num_envs = config.actor.num_envs
    return MetaController(
        config.controller,
        build_space(config.behavior, config.population.size),
        num_envs,
        rng,
        controller_scope(config, spec),
        on_policy_envs=round(config.behavior.on_policy_share * num_envs),
        on_policy_tau=config.target.kappa,
    )


def controller_scope(config: Config, spec: EnvironmentSpec) -> str:
    """Which environments share a controller; where that is left open, the budget decides."""
    steps = config.run.frames / spec.frames_per_step
    return choose_scope(config.controller.scope, config.actor.num_envs, steps / STEPS_PER_EPISODE)


def category(config: Config, space: BehaviorSpace) -> str:
    """The paper's name for what kind of behavior control this is: LBC-H^C_N-Psi^K_L."""
    mappings = int(np.prod([float(r) for r in space.regions]))
    if config.controller.kind == "rule":
        mappings = min(max(space.regions), config.actor.num_envs)
    if config.behavior.on_policy_share == 1.0:
        mappings = space.components
    size = 2 * space.components if space.components > 1 else 1  # one component has no weight to choose
    return f"LBC-H^2_{config.population.size}-Psi^{size}_{mappings}"


def updates_planned(config: Config, frames_per_step: int) -> int:
    """Updates of one learner over the frame budget."""
    samples = config.run.frames / frames_per_step * config.buffer.replay
    batches = samples / (config.buffer.batch_size * config.buffer.sequence_length)
    return int(batches * config.learner.minibatches)
