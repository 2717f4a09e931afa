"""Trained agents, out of a run directory: to act, and to be evaluated."""

from lbc.agents.agent import Agent, Episode, load_agent
from lbc.agents.evaluation import Scores, evaluate
from lbc.agents.folder import directory_of, place_for, trained_agents

__all__ = [
    "Agent",
    "Episode",
    "Scores",
    "directory_of",
    "evaluate",
    "load_agent",
    "place_for",
    "trained_agents",
]
