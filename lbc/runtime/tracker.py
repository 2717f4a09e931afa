"""What a run says about itself: episode scores, speed, lag, and the diagnostics of every part."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from lbc.actor import ActorStep, ReturnMonitor
from lbc.learner import diagnose, kl_between, kl_of_preferences
from lbc.runtime.clock import Clock
from lbc.runtime.experiment import Experiment
from lbc.types import Batch, ProgressSnapshot

MONITORED_ENVS = 8


class Tracker:
    """Counts as the run goes; `metrics` makes the object of one report."""

    _COUNTED = (
        "frames", "episodes", "score_max", "best_mean", "_scores", "_lengths", "_entropies",
        "_responsibilities", "_lags", "_ages", "_monitor",
    )  # fmt: skip

    def __init__(self, experiment: Experiment, clock: Clock | None = None) -> None:
        self._experiment = experiment
        self._clock = clock or Clock()
        config = experiment.config
        self.frames = 0
        self.episodes = 0
        self._scores: deque[float] = deque(maxlen=config.run.score_window)
        self._lengths: deque[int] = deque(maxlen=config.run.score_window)
        self.score_max = float("-inf")
        self.best_mean = float("-inf")
        self._entropies: list[float] = []
        self._responsibilities: list[np.ndarray] = []
        self._lags: list[float] = []
        self._ages: list[float] = []
        self._started = time.monotonic()
        self._last = (0, self._started)  # frames and time at the last report
        self._monitor = ReturnMonitor(experiment.population, watched_envs(experiment))

    def snapshot(self) -> dict[str, Any]:
        return {"seconds": self.seconds} | {name: getattr(self, name) for name in self._COUNTED}

    def resume(self, state: dict[str, Any]) -> None:
        for name in self._COUNTED:
            setattr(self, name, state[name])
        now = time.monotonic()
        self._started = now - state["seconds"]
        self._last = (self.frames, now)

    @property
    def seconds(self) -> float:
        """Of training, in all sittings."""
        return time.monotonic() - self._started

    @property
    def score_mean(self) -> float:
        return float(np.mean(self._scores)) if self._scores else float("nan")

    def progress(self) -> float:
        """Share of the budget that is spent, 0..1; frames decide unless minutes were asked for."""
        run = self._experiment.config.run
        spent = self.seconds / (60.0 * run.minutes) if run.minutes > 0 else self.frames / run.frames
        return min(1.0, spent)

    def acted(self, step: ActorStep, watched: bool = True) -> None:
        """`watched`: this group's first environments are those whose values are followed."""
        self.frames += int((~step.seen.first).sum()) * self._experiment.spec.frames_per_step
        if step.entropy == step.entropy:  # not NaN: somebody acted
            self._entropies.append(step.entropy)
            self._responsibilities.append(step.responsibility)
        if watched:
            ended = {end.index: end.truncated for end in step.ended}
            seen = step.seen
            self._monitor.watch(seen.reward, seen.first, seen.lost, step.value, ended, self.progress())
        for end in step.ended:
            self.episodes += 1
            self._scores.append(end.score)
            self._lengths.append(end.steps)
            self.score_max = max(self.score_max, end.score)
        if len(self._scores) == self._scores.maxlen and step.ended:
            self.best_mean = max(self.best_mean, self.score_mean)

    def learned(self, batch: Batch, lag: float) -> None:
        """lag: updates between the weights that act and those that learn, mean over policies."""
        self._ages.append(batch.age)
        self._lags.append(lag)

    def glance(self) -> ProgressSnapshot:
        entropy = self._entropies[-1] if self._entropies else float("nan")
        speed = self.frames / max(self.seconds, 1e-9)
        return ProgressSnapshot(
            self.progress(), self.frames, self.seconds, speed, self.episodes, self.score_mean, entropy
        )

    def metrics(self, oldest_episode: int, batch: Batch | None) -> dict[str, Any]:
        now = time.monotonic()
        speed = (self.frames - self._last[0]) / max(now - self._last[1], 1e-9)
        self._last = (self.frames, now)
        learners = self._experiment.learners
        report: dict[str, Any] = {
            "frames": self.frames,
            "seconds": self.seconds,
            "episodes": self.episodes,
            "score_mean": self.score_mean,
            "score_max": self.score_max if self.episodes else None,
            "episode_steps": float(np.mean(self._lengths)) if self._lengths else None,
            "frames_per_second": speed,
            "updates": learners[0].updates,
            "setbacks": sum(learner.setbacks for learner in learners),
            "behavior_entropy": _mean(self._entropies),
            "policy_lag": _mean(self._lags),
            "sample_age": _mean(self._ages),
            "episodes_in_flight": self._experiment.num_envs,
            "oldest_episode": oldest_episode,
            "time": self._clock.shares(),
        }
        report |= self._experiment.controller.diagnostics()
        if self._responsibilities:
            report["responsibility"] = np.mean(self._responsibilities, axis=0).tolist()
        explained = self._monitor.explained_variance()
        report["policies"] = [{"explained_variance": variance} for variance in explained]
        if batch is not None:
            piece = learners[0].pieces(batch)[0]  # of a large batch, some sequences say enough
            estimates = [learner.estimate(piece) for learner in learners]
            for signs, learner, e in zip(report["policies"], learners, estimates, strict=True):
                signs |= diagnose(learner, piece, e)
            report["kl_between_policies"] = kl_between([e.log_pi.detach() for e in estimates])
            mapping, psi = self._experiment.mapping, piece.psi[piece.burn_in :]
            report |= kl_of_preferences(estimates, mapping, psi)
        for window in (self._entropies, self._responsibilities, self._lags, self._ages):
            window.clear()
        return report


def watched_envs(experiment: Experiment) -> int:
    """Environments whose whole episodes are followed, value by value."""
    return min(MONITORED_ENVS, experiment.environments[0].num_envs)


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
