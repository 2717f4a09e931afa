"""Which states do two agents visit?  Observations of both, laid out in one plane by t-SNE."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lbc.agents import Agent, load_agent
from lbc.agents.film import play
from lbc.errors import UserError
from lbc.reporting.colours import QUIET, TEXT
from lbc.studies.plan import Study, Variant
from lbc.studies.presentation import Canvas, Panels, Shown

STATES = 800  # of each agent
EPISODES = 40  # at most; each with a psi that the controller draws as it did in training
LONGEST = 2_000  # steps of one episode
DIMENSIONS = 50  # that principal components leave to t-SNE
PERPLEXITY = 30.0


def study() -> Study:
    return Study(
        "tsne",
        "Which states do two agents visit?",
        tuple(
            Variant(label, preset, task="MinAtar Breakout")
            for label, preset in (("LBC-BM", "minatar"), ("random selection", "minatar+random-selection"))
        ),
        seeds=1,
        frames=200_000,
        present=visited_states,
        needs=(("matplotlib", "matplotlib"), ("scikit-learn", "sklearn")),
    )


@dataclass(frozen=True)
class Visits:
    """States of whole episodes, some of them drawn evenly."""

    label: str
    frames: np.ndarray  # [S, ...] observations
    to_go: np.ndarray  # [S] score that the episode still brought
    steps: int  # that they were drawn from
    distinct: int  # different observations among the states drawn
    scores: np.ndarray  # [E] of the episodes played


def visited_states(panels: Panels, canvas: Canvas) -> Shown:
    """One panel per variant, of its first run; grey: the others' states in the same plane."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if len(panels) > 1:
        raise UserError(f"t-SNE lays out states of one game, but these runs played {', '.join(panels)}.")
    chosen = _two_runs(next(iter(panels.values())))
    with threadpool_limits(1):  # small matrices: more threads would only wait for each other
        everybody = [_visits(label, path) for label, path in chosen]
        if len({visits.frames.shape[1:] for visits in everybody}) > 1:
            raise UserError(
                "the two agents see observations of different shapes, which t-SNE cannot compare."
            )
        states = [visits.frames.reshape(len(visits.frames), -1) for visits in everybody]
        flat = _components(np.concatenate(states))
        perplexity = min(PERPLEXITY, (len(flat) - 1) / 3.0)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(flat)
        owner = np.repeat(np.arange(len(everybody)), [len(visits.frames) for visits in everybody])
        mixing = neighbours_of_the_same(flat, owner)
    game = next(iter(panels)) or canvas.title
    _draw(plane, owner, everybody, game, canvas.png)
    rows = [
        {"variant": everybody[k].label, "x": float(x), "y": float(y), "return_to_go": float(value)}
        for (x, y), k, value in zip(plane, owner, np.concatenate([v.to_go for v in everybody]), strict=True)
    ]
    lines = [
        f"| {v.label} | {len(v.scores)} | {v.scores.mean():.2f} | {v.steps:,} | {len(v.frames)} "
        f"| {v.distinct} |"
        for v in everybody
    ]
    head = "| variant | episodes | mean score | steps | states drawn | of them distinct |"
    return Shown(
        "\n".join([head, "|---|---|---|---|---|---|", *lines]),
        _finding(everybody, mixing),
        rows,
        [canvas.png],
    )


def _two_runs(runs: Any) -> list[tuple[str, Path]]:
    """The first run of each variant; of a single variant, its runs."""
    if len(runs) > 1:
        chosen = [(label, Path(paths[0])) for label, paths in runs.items()]
    else:
        ((label, paths),) = runs.items()
        chosen = [(f"{label}, {Path(path).name}", Path(path)) for path in paths]
    if len(chosen) != 2:
        raise UserError(f"t-SNE compares two runs, but got {len(chosen)}; name two with --runs.")
    return chosen


def _visits(label: str, run: Path) -> Visits:
    agent = load_agent(run, "cpu")
    frames: list[np.ndarray] = []
    to_go: list[float] = []
    scores = []
    for episode in range(EPISODES):
        scenes = list(play(agent, _psi(agent, episode), seed=episode, steps=LONGEST))
        final = scenes[-1].score
        frames += [scene.frame for scene in scenes]
        to_go += [final - scene.score for scene in scenes]
        scores.append(final)
        if len(frames) >= 3 * STATES:
            break
    some = np.unique(np.linspace(0, len(frames) - 1, STATES).round().astype(int))
    drawn = np.stack([frames[i] for i in some]).astype(np.float64)
    distinct = len(np.unique(drawn.reshape(len(drawn), -1), axis=0))
    return Visits(label, drawn, np.array([to_go[i] for i in some]), len(frames), distinct, np.array(scores))


def _psi(agent: Agent, episode: int) -> np.ndarray | None:
    """As the controller draws it while training, every environment in turn; without one, the favourite."""
    if agent.controller is None:
        return None
    return agent.controller.start(episode % agent.config.actor.num_envs)


def _components(states: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import PCA

    most = min(DIMENSIONS, *states.shape)
    found: np.ndarray = PCA(most, random_state=0).fit_transform(states) if states.shape[1] > most else states
    return found


def neighbours_of_the_same(states: np.ndarray, owner: np.ndarray) -> float:
    """Share of states whose nearest other state belongs to the same agent; about 1/2 if both visit the same.

    Ties count in proportion, as equal states are nearest to all of their copies.
    """
    shares = []
    for i, state in enumerate(states):
        distance = ((states - state) ** 2).sum(1)
        distance[i] = np.inf
        nearest = distance <= distance.min() + 1e-9
        shares.append((owner[nearest] == owner[i]).mean())
    return float(np.mean(shares))


def _finding(everybody: list[Visits], mixing: float) -> str:
    first, second = everybody
    size = len(first.frames) + len(second.frames)
    even = sum((len(v.frames) * (len(v.frames) - 1)) for v in everybody) / (size * (size - 1))
    noise = 2.0 * (even * (1.0 - even) / size) ** 0.5
    verdict = (
        "these two runs visit different states"
        if mixing > even + 2.0 * noise
        else "nothing here tells their states apart"
    )
    return (
        f"Of {len(first.frames)} states of {first.label}, {first.distinct} are distinct;"
        f" of {len(second.frames)} of {second.label}, {second.distinct}."
        f" The nearest neighbour of a state belongs to the same agent in {mixing:.0%} of the cases,"
        f" {even:.0%} would be even: {verdict}."
        " This is one run of each, and states of one episode resemble each other, so the difference may be"
        " that of two seeds; places and distances in a t-SNE picture mean little beyond who is near whom."
    )


def _draw(plane: np.ndarray, owner: np.ndarray, everybody: list[Visits], title: str, png: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    highest = max(1e-9, *(float(np.percentile(visits.to_go, 98)) for visits in everybody))
    lowest = min(0.0, *(float(np.percentile(visits.to_go, 2)) for visits in everybody))
    for k, (axes, visits) in enumerate(zip(panels, everybody, strict=True)):
        axes.scatter(*plane[owner != k].T, s=5, color="#dfe2e6", linewidths=0)
        points = axes.scatter(
            *plane[owner == k].T, s=8, c=visits.to_go, cmap="viridis", vmin=lowest, vmax=highest, linewidths=0
        )
        axes.set_title(visits.label, loc="left", color=TEXT, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_color("#e3e6ea")
    bar = figure.colorbar(points, ax=panels, pad=0.01, shrink=0.9)
    bar.set_label("score still to come in the episode", color=TEXT)
    bar.ax.tick_params(colors=TEXT, length=2)
    bar.outline.set_visible(False)
    figure.suptitle(f"{title}: visited states", x=0.01, ha="left", color=TEXT, fontsize=12, fontweight="bold")
    note = "One t-SNE plane for both; grey: the other agent's states."
    figure.supxlabel(note, x=0.01, ha="left", color=QUIET, fontsize=8.5)
    figure.savefig(png, dpi=95)
