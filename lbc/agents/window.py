"""A film as it happens, in a window; it needs pygame (the extra `video`)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from lbc.errors import UserError, missing_extra

KEYS = "space pauses, right is one step, up and down change the speed, q or Esc quits"
_FASTER, _SPEEDS = 1.5, (1 / 16, 64.0)  # a key's factor; bounds of the speed
_AWAKE = 0.01  # seconds between two looks at the keyboard


class Window:
    """Shows pictures at a pace that keys change.

    ::

        for picture in Window("pong").show(pictures): ...      # each when it has been shown
    """

    def __init__(self, title: str, fps: float) -> None:
        try:
            with contextlib.redirect_stdout(None):  # it greets
                import pygame
        except ImportError:
            raise missing_extra("pygame, which opens windows,", "video") from None
        self._pygame, self._title, self._fps = pygame, title, fps
        self.speed, self.paused, self.closed = 1.0, False, False
        self._steps = 0  # to take although paused
        self._surface: Any = None
        self._open()

    def show(self, pictures: Iterable[Any]) -> Iterator[Any]:
        """Every picture at its time; ends with the pictures, or when the window is closed."""
        due = time.monotonic()
        try:
            for picture in pictures:
                self._draw(picture)
                self._look()
                if not self.closed:
                    yield picture
                due = self._wait(due)
                if self.closed:
                    return
        finally:
            self._pygame.display.quit()

    def _open(self) -> None:
        """Where there is no screen, pygame would go on with one that nobody sees, unless that was wished."""
        pygame, reason = self._pygame, "there is no screen"
        try:
            pygame.display.init()
            if "SDL_VIDEODRIVER" in os.environ or pygame.display.get_driver() not in ("dummy", "offscreen"):
                return
        except pygame.error as error:
            reason = str(error).rstrip(".")
        raise UserError(
            f"no window can be opened here ({reason}); leave out --window to record a film instead."
        )

    def _draw(self, picture: Any) -> None:
        pygame = self._pygame
        if self._surface is None:
            self._surface = pygame.display.set_mode(picture.size)
            self._name()
        drawn = pygame.image.frombuffer(picture.convert("RGB").tobytes(), picture.size, "RGB")
        self._surface.blit(drawn, (0, 0))
        pygame.display.flip()

    def _wait(self, due: float) -> float:
        """Until the next picture is due; when that will be for the one after it."""
        while not self.closed:
            self._look()
            if self._steps:
                self._steps -= 1
                break
            if not self.paused and time.monotonic() >= due + 1 / (self.speed * self._fps):
                break
            time.sleep(_AWAKE if self.paused else min(_AWAKE, 1 / (self.speed * self._fps)))
        # What is late is not caught up: the game would rush after a pause.
        return max(due + 1 / (self.speed * self._fps), time.monotonic() - _AWAKE)

    def _look(self) -> None:
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.closed = True
            elif event.type == pygame.KEYDOWN:
                self._press(event.key)

    def _press(self, key: int) -> None:
        pygame = self._pygame
        if key in (pygame.K_q, pygame.K_ESCAPE):
            self.closed = True
        elif key == pygame.K_SPACE:
            self.paused = not self.paused
        elif key == pygame.K_RIGHT:
            self.paused, self._steps = True, self._steps + 1
        elif key in (pygame.K_UP, pygame.K_DOWN):
            speed = self.speed * (_FASTER if key == pygame.K_UP else 1 / _FASTER)
            self.speed = min(max(speed, _SPEEDS[0]), _SPEEDS[1])
        self._name()

    def _name(self) -> None:
        speed = f", {self.speed:.2g} times as fast" if abs(self.speed - 1) > 0.01 else ""
        self._pygame.display.set_caption(f"{self._title}{speed}{', paused' if self.paused else ''}")
