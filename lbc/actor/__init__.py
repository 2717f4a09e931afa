"""Acting: N policies, one behavior, E environments."""

from lbc.actor.actor import Actor, ActorStep, EpisodeEnd, PsiSource
from lbc.actor.evaluation import play_episodes, ways_to_play
from lbc.actor.monitor import ReturnMonitor

__all__ = [
    "Actor",
    "ActorStep",
    "EpisodeEnd",
    "PsiSource",
    "ReturnMonitor",
    "play_episodes",
    "ways_to_play",
]
