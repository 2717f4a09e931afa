"""Ctrl-C and SIGTERM end a run; they do not break it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

ECHO = 0.4  # seconds: `timeout` and service managers send one wish twice, to the process and to its group
PATIENCE = 1.0  # seconds for learners, games and the display to end, once it is an order
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


class StopRequest:
    """The first signal is a request, the second an order: what does not end within a second is left::

    with StopRequest() as stop:
        train(..., should_stop=stop.requested)      # ends at its next step
    exit_code = stop.exit_code                      # 0, 130 or 143
    """

    def __init__(self, command: bool = True) -> None:
        self._command = command  # False: inside somebody's program, which is not ours to leave
        self._received: int | None = None
        self._received_at = 0.0
        self._previous: dict[int, Any] = {}
        self._last_resort: threading.Timer | None = None

    def requested(self) -> bool:
        return self._received is not None

    @property
    def exit_code(self) -> int:
        """As a shell counts: 128 plus the signal's number."""
        return 0 if self._received is None else 128 + self._received

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other hears signals
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._last_resort is not None:
            self._last_resort.cancel()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.requested():
            self._received, self._received_at = number, now
        elif now - self._received_at > ECHO:
            self._received = number
            if self._last_resort is None and self._command:
                self._last_resort = threading.Timer(PATIENCE, _leave, [self.exit_code])
                self._last_resort.daemon = True
                self._last_resort.start()
            raise KeyboardInterrupt


def _leave(code: int) -> None:
    """Without a word to anybody: environment processes notice that their pipe has ended."""
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
    os._exit(code)
