"""Learners that share a machine: how many work at once."""

from __future__ import annotations

import threading
import time

import pytest

from lbc.parameters import ParameterServer
from lbc.runtime import crew as module
from lbc.runtime.crew import Crew
from tests.builders import batch, learner, network


@pytest.mark.parametrize("cores", [1, 2])
def test_as_many_pieces_are_differentiated_at_once_as_there_are_cores(cores, monkeypatch):
    monkeypatch.setattr(module, "usable_cores", lambda: cores)
    learners = [learner(network(seed=i), chunk=1) for i in range(3)]
    at_once, most, lock, together = 0, 0, threading.Lock(), threading.Event()

    def watched(losses):
        def slow(*arguments):
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
                if at_once == cores:
                    together.set()
            together.wait(60)
            time.sleep(0.02)  # long enough for one too many to come here
            with lock:
                at_once -= 1
            return losses(*arguments)

        return slow

    for one in learners:
        monkeypatch.setattr(one, "losses", watched(one.losses))
    crew = Crew(learners, ParameterServer(), push_interval=100, threads=True)
    crew.learn(batch(), 0.5)
    crew.wait()
    crew.close()
    assert most == cores and all(one.updates == 1 for one in learners)
