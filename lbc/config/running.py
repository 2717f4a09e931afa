"""How a run is carried out: who plays, and for how long, where and in what numbers it computes."""

from __future__ import annotations

from dataclasses import dataclass

from lbc.config.checks import at_least, one_of, positive


@dataclass(frozen=True)
class ActorConfig:
    num_envs: int = 64
    pull_interval: int = 64  # d_pull: actor steps between two pulls from the parameter server
    workers: int = 0  # runtime 'local': environment processes; 0: one per core, from 8 cores on nearly two
    groups: int = 2  # runtime 'local': environments that step in turns, so that play and thought overlap
    stagger_steps: int = 0  # each environment breaks one episode off, after 1 to so many steps; 0: none

    def __post_init__(self) -> None:
        at_least("actor", "num_envs", self.num_envs, 1)
        at_least("actor", "workers", self.workers, 0)
        at_least("actor", "groups", self.groups, 1)
        at_least("actor", "pull_interval", self.pull_interval, 1)
        at_least("actor", "stagger_steps", self.stagger_steps, 0)


@dataclass(frozen=True)
class RunConfig:
    runtime: str = "local"  # serial: one process, deterministic | local: many processes
    frames: int = 1_000_000_000
    minutes: float = 0.0  # a time budget instead of frames; 0: none
    seed: int = 1
    init: str = ""  # directory of a run whose weights this one begins with; empty: with its own
    score_window: int = 32  # training episodes behind score_mean
    reports: int = 100  # lines in metrics.jsonl over the whole run, at least
    report_seconds: float = 10.0  # and at least one this often
    checkpoint_seconds: float = 300.0
    checkpoint_form: str = "full"  # compact: without games and buffer, bfloat16, files of at most 15 MB
    device: str = "auto"  # auto | cpu | cuda | mps
    precision: str = "auto"  # float32 | float64 | bfloat16 (weights, losses float32) | auto: bfloat16 on CUDA
    evaluation_episodes: int = 8  # runtime 'local': per round, in every way to play; 0: no evaluation
    learner_processes: bool = True  # runtime 'local' on a CPU: a process for every learner, or else a thread
    cuda_graphs: bool = True  # runtime 'local' on CUDA: thoughts and updates as captured graphs
    threads: int = 0  # torch threads; 0: the usable cores ('local': shared among the learners)
    sinks: tuple[str, ...] = ("tensorboard",)  # also "wandb:project" and "mlflow:experiment"

    def __post_init__(self) -> None:
        one_of("run", "runtime", self.runtime, ("serial", "local"))
        at_least("run", "frames", self.frames, 1)
        at_least("run", "minutes", self.minutes, 0.0)
        at_least("run", "seed", self.seed, 0)
        at_least("run", "score_window", self.score_window, 1)
        at_least("run", "reports", self.reports, 1)
        positive("run", "report_seconds", self.report_seconds)
        positive("run", "checkpoint_seconds", self.checkpoint_seconds)
        one_of("run", "checkpoint_form", self.checkpoint_form, ("full", "compact"))
        one_of("run", "precision", self.precision, ("auto", "float32", "float64", "bfloat16"))
        at_least("run", "threads", self.threads, 0)
        at_least("run", "evaluation_episodes", self.evaluation_episodes, 0)
        for sink in self.sinks:
            one_of("run", "sinks", sink.partition(":")[0], ("tensorboard", "wandb", "mlflow"))
