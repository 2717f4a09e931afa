"""Trained agents, out of a run directory: to act, and to be evaluated."""

from lbc.agents.agent import Agent, Episode, load_agent
from lbc.agents.evaluation import Scores, evaluate

__all__ = ["Agent", "Episode", "Scores", "evaluate", "load_agent"]
