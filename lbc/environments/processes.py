"""How a run's other processes begin and end, whatever they do."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any


def process_context() -> Any:
    """A server that is forked for every process: quick, small, and clean of this process's threads."""
    methods = multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")


def preload(*modules: str) -> None:
    """Starts the server of `process_context` with these modules, which its processes then have at once.

    Where it runs already, it stays as it is.
    """
    if "forkserver" in multiprocessing.get_all_start_methods():
        from multiprocessing import forkserver  # not everywhere

        forkserver.set_forkserver_preload(list(modules))
        with _without_sigint():  # which would end a server that has not loaded them yet
            forkserver.ensure_running()


@contextlib.contextmanager
def _without_sigint() -> Iterator[None]:
    """A process that is started here ignores SIGINT; only the main thread can see to that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave_signals_to_the_parent() -> None:
    """SIGINT and SIGTERM may reach all processes; the parent decides."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def end_with_the_parent() -> None:
    """For a process whose work may last: a parent that was killed must not leave it behind."""
    threading.Thread(target=_wait_for_its_end, daemon=True).start()


def _wait_for_its_end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
