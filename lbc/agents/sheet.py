"""One picture per scene: the game, and beside it every policy's opinion.

Pictures have a palette that only grows, and are put together as numbers: what never changes is drawn once, a
line of text once per wording, so that a film costs little more than the game.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from lbc.agents.agent import Agent
from lbc.agents.scenes import Scene
from lbc.environments import make
from lbc.errors import UserError
from lbc.reporting.colours import FILLS

INK, FAINT, PAPER, MU = "#222222", "#8a8a8a", "#ffffff", "#444444"
GAME, MARGIN, PANEL = 336, 20, 380  # pixels; a game's own screen is twice its size instead
HEAD, FOOT, SHARE = 64, 14, 90  # heights of the panel's first lines and of its last; width of a share
_FINE = 4  # letters are drawn so many times larger, and then reduced: their distances need parts of pixels
_GREYS = 8  # distance of two greys of a letter's edge


class Palette:
    """At most 255 colours, in the order of their first use; number 0 is none of them."""

    def __init__(self) -> None:
        self._numbers = np.zeros(1 << 24, np.uint8)  # colour -> its number, 0 for not yet known
        self._colours = np.zeros((256, 3), np.uint8)
        self._count = 1

    def numbers(self, picture: np.ndarray) -> np.ndarray:
        """[..., 3] bytes as numbers of colours; when all are given away, the nearest stands in."""
        red, green, blue = np.moveaxis(picture, -1, 0).astype(np.uint32)
        colours = red << 16 | green << 8 | blue
        found = self._numbers[colours]
        if not found.all():
            for colour in np.unique(colours[found == 0]):
                self._numbers[colour] = self._number(int(colour))
            found = self._numbers[colours]
        return np.asarray(found)

    def number(self, colour: str) -> int:
        return int(self.numbers(np.frombuffer(bytes.fromhex(colour[1:]), np.uint8)))

    def bytes(self) -> bytes:
        return self._colours.tobytes()

    def _number(self, colour: int) -> int:
        rgb = np.array([colour >> 16, colour >> 8 & 255, colour & 255])
        if self._count == 256:
            return 1 + int(((self._colours[1:] - rgb.astype(float)) ** 2).sum(-1).argmin())
        self._colours[self._count] = rgb
        self._count += 1
        return self._count - 1


class Sheet:
    """Draws scenes of one agent."""

    def __init__(self, agent: Agent) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:
            raise UserError("pictures need Pillow; install it with: pip install pillow") from None
        self._image, self._pen = Image, ImageDraw
        self._fonts = {size: ImageFont.load_default(_FINE * size) for size in (9, 11, 14)}
        self.palette = Palette()
        self._paper, self._faint, self._ink, self._mu = map(self.palette.number, (PAPER, FAINT, INK, MU))
        self._fills = [self.palette.number(fill) for fill in FILLS]
        self._game = agent.spec.id
        self._actions = action_names(agent)
        policies = [agent.population[i] for i in agent.mapping.components]
        self._names = [f"policy {p.index + 1}: {p.shaping}, discount {p.discount:g}" for p in policies]
        self._text = functools.lru_cache(256)(self._written)
        self._base = np.zeros((0, 0), np.uint8)

    def draw(self, scene: Scene) -> Any:
        """A Pillow image with the colours known by now: the game on the left, opinions on the right."""
        game = self._picture(scene)
        shape = (game.shape[0] + 2 * MARGIN, game.shape[1] + PANEL + 3 * MARGIN)
        if self._base.shape != shape:
            self._base = self._background(shape, game.shape[1] + 2 * MARGIN)
        sheet, x, y = self._base.copy(), game.shape[1] + 2 * MARGIN, MARGIN - 2
        sheet[MARGIN : MARGIN + game.shape[0], MARGIN : MARGIN + game.shape[1]] = game
        entropy = float(-(scene.mu * np.log(np.maximum(scene.mu, 1e-12))).sum())
        self._write(sheet, x, y + 20, f"score {scene.score:g}, step {scene.step}", INK, 14)
        self._write(sheet, x, y + 40, f"plays {self._actions[scene.action]}", INK, 14)
        self._write(sheet, x + PANEL, y + 22, f"entropy {entropy:.2f} nats", FAINT, 11, right=True)
        m = len(scene.components)
        height = (shape[0] - MARGIN - FOOT - y - HEAD) / (m + 1)
        for i, opinion in enumerate(scene.components):
            top, fill = y + HEAD + i * height, self._fills[i % len(self._fills)]
            title = f"{self._names[i]}; tau {scene.psi[i]:.1f}, omega {scene.psi[m + i]:.2f}"
            self._opinion(sheet, x, top, height, opinion, scene.action, title, fill)
            self._share(sheet, x + PANEL - SHARE, round(top), float(scene.steering[i]), fill)
        top = y + HEAD + m * height
        self._opinion(sheet, x, top, height, scene.mu, scene.action, "behavior: all together", self._mu)
        picture = self._image.fromarray(sheet)
        picture.putpalette(self.palette.bytes())
        return picture

    def _background(self, shape: tuple[int, ...], x: int) -> np.ndarray:
        """What is the same in every scene: the game's name and the actions' names."""
        sheet = np.full(shape, self._paper, np.uint8)
        self._write(sheet, x, MARGIN - 2, self._game, INK, 14)
        self._write(sheet, x + PANEL, MARGIN + 40, "share in the action", FAINT, 11, right=True)
        width = PANEL / len(self._actions)
        for i, label in enumerate(self._labels(width)):
            self._write(
                sheet, x + i * width + width / 2 - 1, shape[0] - MARGIN - 12, label, FAINT, 9, centre=True
            )
        return sheet

    def _labels(self, width: float) -> list[str]:
        """The actions' names, shorter where bars are narrow, and none where they are very narrow."""
        for labels in (self._actions, [short(name) for name in self._actions]):
            if max(self._fonts[9].getlength(label) / _FINE for label in labels) < width - 1:
                return labels
        return []

    def _opinion(
        self,
        sheet: np.ndarray,
        x: int,
        top: float,
        height: float,
        chances: np.ndarray,
        action: int,
        title: str,
        colour: int,
    ) -> None:
        """A bar per action; the one that was taken has a mark."""
        self._write(sheet, x, top, title, INK, 11)
        bottom, room, width = round(top + height) - 8, height - 26, PANEL / len(chances)
        for i, chance in enumerate(chances):
            columns = slice(round(x + i * width), round(x + (i + 1) * width) - 2)
            sheet[bottom - max(1, round(room * float(chance))) : bottom, columns] = colour
            if i == action:
                sheet[bottom + 2 : bottom + 5, columns] = self._ink

    def _share(self, sheet: np.ndarray, x: int, top: int, share: float, colour: int) -> None:
        """How much of the action is this component's doing."""
        sheet[top + 2 : top + 12, x : x + SHARE] = self._faint
        sheet[top + 3 : top + 11, x + 1 : x + SHARE - 1] = self._paper
        sheet[top + 3 : top + 11, x + 1 : x + 1 + round((SHARE - 2) * min(1.0, max(0.0, share)))] = colour

    def _write(
        self,
        sheet: np.ndarray,
        x: float,
        y: float,
        text: str,
        colour: str,
        size: int,
        right: bool = False,
        centre: bool = False,
    ) -> None:
        letters = self._text(text, colour, size)
        left = round(x - (letters.shape[1] if right else letters.shape[1] / 2 if centre else 0))
        sheet[round(y) : round(y) + letters.shape[0], left : left + letters.shape[1]] = letters

    def _written(self, text: str, colour: str, size: int) -> np.ndarray:
        """A line of text on paper; few greys at the letters' edges."""
        font = self._fonts[size]
        width = max(1, min(PANEL, math.ceil(font.getlength(text) / _FINE)))
        canvas = self._image.new("L", (_FINE * width, _FINE * round(1.4 * size)), 255)
        self._pen.Draw(canvas).text((0, 0), text, int(colour[1:3], 16), font)
        grey = np.asarray(canvas.reduce(_FINE))
        edge = np.where(grey == 255, 255, grey // _GREYS * _GREYS + _GREYS // 2).astype(np.uint8)
        return self.palette.numbers(np.stack([edge] * 3, axis=-1))

    def _picture(self, scene: Scene) -> np.ndarray:
        """The game's screen, or else what the agent sees, as numbers of colours."""
        if scene.screen is not None:
            return self.palette.numbers(scene.screen).repeat(2, axis=0).repeat(2, axis=1)
        small = self.palette.numbers(seen(scene.frame))
        rows, columns = (np.arange(GAME) * size // GAME for size in small.shape)
        return np.asarray(small[rows][:, columns])


def seen(frame: np.ndarray) -> np.ndarray:
    """What an agent sees, [H, W, 3] bytes; numbers that are no image become bars."""
    if frame.ndim == 3 and frame.shape[0] == 1:
        grey = frame[0] if frame.dtype == np.uint8 else 255.0 * np.clip(frame[0], 0.0, 1.0)
        return np.stack([grey.astype(np.uint8) // 2 * 2] * 3, axis=-1)  # greys and colours share a palette
    return _coloured(frame) if frame.ndim == 3 else _bars(frame.ravel())


def _coloured(frame: np.ndarray) -> np.ndarray:
    """A channel per kind of thing, a colour per channel; the last one on top."""
    picture = np.full((*frame.shape[1:], 3), 245, np.uint8)
    for channel, there in enumerate(frame > 0):
        picture[there] = np.frombuffer(bytes.fromhex(FILLS[channel % len(FILLS)][1:]), np.uint8)
    return picture


def _bars(numbers: np.ndarray) -> np.ndarray:
    """A row per number, from the middle to either side; tanh keeps large ones on the page."""
    rows = np.full((2 * len(numbers) + 1, 101, 3), 245, np.uint8)
    for i, number in enumerate(numbers):
        end = 50 + round(50 * float(np.tanh(number)))
        rows[2 * i + 1, min(50, end) : max(50, end) + 1] = (0, 114, 178)
    return rows


def action_names(agent: Agent) -> list[str]:
    """As the game calls them, or numbered."""
    environment = make(agent.config.environment, 1)
    names = getattr(environment, "action_names", None)
    environment.close()
    return names or [f"action {i}" for i in range(agent.spec.num_actions)]


def short(name: str) -> str:
    """``uprightfire`` as ``URF``, ``noop`` as a dash, ``action 3`` as ``3``."""
    rest, letters = name, ""
    for word in ("up", "down", "left", "right", "fire"):
        if word in rest:
            rest, letters = rest.replace(word, "", 1), letters + word[0].upper()
    if not rest:
        return letters
    return "-" if name == "noop" else name.rpartition(" ")[2]
