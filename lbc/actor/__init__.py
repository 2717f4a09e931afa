"""Acting: N policies, one behavior, E environments."""

from lbc.actor.actor import Actor, ActorStep, EpisodeEnd, PsiSource
from lbc.actor.evaluation import play_episodes, ways_to_play
from lbc.actor.mind import Mind, Thought
from lbc.actor.monitor import ReturnMonitor

__all__ = [
    "Actor",
    "ActorStep",
    "EpisodeEnd",
    "Mind",
    "PsiSource",
    "ReturnMonitor",
    "Thought",
    "play_episodes",
    "ways_to_play",
]
