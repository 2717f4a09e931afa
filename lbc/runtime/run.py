"""One experiment in motion: acts, stores, learns.  The two runtimes differ in where the games play and
whether the learners wait for each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from lbc.actor import Actor, Mind
from lbc.actor.graphed import GraphedMind
from lbc.config import Config
from lbc.environments.cores import usable_cores
from lbc.environments.processes import preload
from lbc.environments.workers import WorkerPool
from lbc.interfaces import VectorEnvironment
from lbc.runtime.clock import Clock
from lbc.runtime.crew import Crew, GraphedCrew
from lbc.runtime.evaluator import Evaluator
from lbc.runtime.experiment import Experiment, assemble
from lbc.runtime.learner_processes import ProcessCrew, has_room
from lbc.runtime.tracker import Tracker, watched_envs
from lbc.types import Batch


class Run:
    """`step` is one step of the group whose turn it is, and all updates that became due."""

    def __init__(self, config: Config, environments: Sequence[VectorEnvironment], concurrent: bool) -> None:
        self.experiment: Experiment = assemble(config, environments)
        e = self.experiment
        graphs = concurrent and config.run.cuda_graphs and e.device.type == "cuda"
        self.actors: list[Actor] = []
        first_env = 0
        for environment in e.environments:
            mind = (GraphedMind if graphs else Mind)(
                e.spec,
                environment.num_envs,
                e.actor_networks,
                e.population,
                e.mapping,
                e.target,
                config.run.seed + first_env,
                e.device,
                e.dtype,
                watched=0 if self.actors else watched_envs(e),
            )
            actor = Actor(environment, mind, e.controller, config.run.seed, first_env)
            first_env += environment.num_envs
            self.actors.append(actor)
        work = (e.learners, e.server, config.learner.push_interval)
        self.crew: Crew
        if graphs:
            self.crew = GraphedCrew(*work)
        elif concurrent and _learns_in_processes(config):
            self.crew = ProcessCrew(*work, config, e.spec)
        else:
            self.crew = Crew(*work, concurrent)
        self.clock = Clock()
        self.tracker = Tracker(e, self.clock)
        self.evaluator: Evaluator | None = None
        self._evaluated: dict[str, Any] = {}
        self.learning = True  # False: acting only, to measure it
        self.last_batch: Batch | None = None
        self._steps = 0  # of all groups together
        self._versions = [-1] * len(e.learners)

    @property
    def actor(self) -> Actor:
        """The first group's."""
        return self.actors[0]

    def step(self) -> None:
        self.clock.lap("reports")
        group = self._steps % len(self.actors)
        if self._steps % (self.experiment.config.actor.pull_interval * len(self.actors)) == 0:
            self._pull()
        acted = self.actors[group].step()
        self.clock.lap("inference", of_which=("environments", acted.waited))
        if self.learning:
            self.experiment.buffer.append(acted.row, acted.state, group)
        self.tracker.acted(acted, watched=group == 0)
        self._steps += 1
        self.clock.lap("storage")
        while self.learning and self.experiment.buffer.ready():
            batch = self.experiment.buffer.sample()
            self.clock.lap("storage")
            self._learn(batch)
            self.clock.lap("learners")

    def _pull(self) -> None:
        self.crew.look()
        for i, network in enumerate(self.experiment.actor_networks):
            self._versions[i] = self.experiment.server.pull(i, network, have=self._versions[i])

    def _learn(self, batch: Batch) -> None:
        self.crew.wait()
        self.last_batch = batch
        learners = self.experiment.learners
        lag = sum(
            learner.updates - version for learner, version in zip(learners, self._versions, strict=True)
        )
        self.crew.learn(batch, self.tracker.progress())
        self.tracker.learned(batch, lag / len(learners))

    def oldest_episode(self) -> int:
        """Steps that the longest episode in flight has lasted."""
        return max(int(actor.episode_ages().max()) for actor in self.actors)

    def snapshot(self) -> dict[str, Any]:
        """Everything that decides what happens next; where the games cannot be saved, what was learned."""
        self.settle()
        e, batch = self.experiment, self.last_batch
        state = {
            "steps": self._steps,
            "learners": e.learners,
            "controller": e.controller,
            "tracker": self.tracker,
        }
        if self.resumable:
            state |= {
                "versions": self._versions,
                "server": e.server,
                "actor_networks": [network.state_dict() for network in e.actor_networks],
                "actors": self.actors,
                "environments": list(e.environments),
                "buffer": e.buffer,
                "batch": None if batch is None else dict(vars(batch)),
            }
        return state

    def resume(self, state: dict[str, Any]) -> None:
        e = self.experiment
        self._steps = state["steps"]
        if self.resumable:
            self._versions = state["versions"]
            for network, weights in zip(e.actor_networks, state["actor_networks"], strict=True):
                network.load_state_dict(weights)
            self.last_batch = None if state["batch"] is None else Batch(**state["batch"])
            return
        for learner in e.learners:
            e.server.push(learner.policy.index, learner.network, learner.updates)
        self._pull()
        e.controller.forget_episodes()
        for actor in self.actors:
            actor.restart((e.config.run.seed + self.tracker.frames) % 2**30)

    @property
    def resumable(self) -> bool:
        """Whether a saved run goes on as if it had never stopped."""
        full = self.experiment.config.run.checkpoint_form == "full"
        return full and all(environment.resumable for environment in self.experiment.environments)

    def settle(self) -> None:
        """Waits until no learner is at work, so that weights and statistics stand still."""
        self.crew.wait()

    def report(self) -> dict[str, Any]:
        """One object for metrics.jsonl."""
        self.settle()
        if self.evaluator is not None:
            self.evaluator.offer(self.experiment, self.tracker.frames)
            self._evaluated = self.evaluator.latest
        return self.tracker.metrics(self.oldest_episode(), self.last_batch) | self._evaluated

    def close(self) -> None:
        self.crew.close()
        if self.evaluator is not None:
            self.evaluator.close()
            self.evaluator = None
        for actor in self.actors:
            actor.mind.close()
        for environment in self.experiment.environments:
            environment.close()


class SerialRun(Run):
    """One process, one loop, the same numbers for the same seed, bit for bit.

    (With a budget in minutes the clock enters the schedule, and with it the numbers.)
    """

    def __init__(self, config: Config) -> None:
        torch.set_num_threads(config.run.threads or usable_cores())
        super().__init__(config, (), concurrent=False)


class LocalRun(Run):
    """Environment processes play in groups, this process infers for one group while the others play,
    and every learner has a process, a thread or a stream of its own."""

    def __init__(self, config: Config) -> None:
        each = max(1, usable_cores() // config.population.size)
        torch.set_num_threads(config.run.threads or each)
        if _learns_in_processes(config) and sys.platform == "linux":  # elsewhere torch may not be forked
            preload("lbc.runtime.forked")
        actor = config.actor
        self.pool = WorkerPool(
            config.environment, actor.num_envs, actor.workers, actor.groups, actor.stagger_steps
        )
        try:
            super().__init__(config, self.pool.groups, concurrent=True)
            if config.run.evaluation_episodes:
                self.evaluator = Evaluator(config)
        except BaseException:
            self.pool.close()
            raise

    def close(self) -> None:
        super().close()
        self.pool.close()


def _learns_in_processes(config: Config) -> bool:
    """On a GPU learners are graphs; those of a shared target look at each other's newest weights."""
    run = config.run
    on_cpu = run.device == "cpu" or (run.device == "auto" and not torch.cuda.is_available())
    return on_cpu and run.learner_processes and not config.target.shared and has_room()


RUNTIMES = {"serial": SerialRun, "local": LocalRun}
