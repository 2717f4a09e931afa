"""Who is steering?  An episode as pictures: the game, and beside it every policy's opinion.

::

    scenes = play(agent, seed=1)                # one by one, as the episode goes
    save(map(Sheet(agent).draw, scenes), Path("pong.gif"))

It needs Pillow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lbc.actor import Mind
from lbc.agents.agent import Agent
from lbc.environments import make
from lbc.errors import UserError
from lbc.reporting.colours import FILLS

INK, FAINT, PAPER, MU = "#222222", "#8a8a8a", "#ffffff", "#444444"
GAME, MARGIN, PANEL, HEIGHT = 336, 20, 380, 376  # pixels


@dataclass(frozen=True)
class Scene:
    """One step of an episode."""

    frame: np.ndarray
    step: int
    score: float  # so far
    action: int
    psi: np.ndarray  # [2M]
    components: np.ndarray  # [M, A] what each component would do
    mu: np.ndarray  # [A] what they do together
    steering: np.ndarray  # [M] each component's share in the action that was taken


class _Telling(Mind):
    """A mind that also says what every component thinks."""

    components: Tensor
    mu: Tensor

    def _summarise(
        self, log_components: Tensor, log_mu: Tensor, psi: Tensor, action: Tensor, acted: Tensor
    ) -> Tensor:
        self.components, self.mu = log_components.exp(), log_mu.exp()
        return super()._summarise(log_components, log_mu, psi, action, acted)


def play(agent: Agent, psi: np.ndarray | None = None, seed: int = 0, steps: int = 100_000) -> Iterator[Scene]:
    """One episode, at most `steps` long, with `psi` or else the favourite."""
    psi = agent.favourite if psi is None else psi
    environment = make(agent.config.environment, 1)
    mind = agent.mind(1, seed, _Telling)
    try:
        seen, score = environment.reset(seed), 0.0
        for step in range(steps):
            score += float(seen.reward[0])
            over = bool(seen.terminated[0] or seen.truncated[0])
            numbers = np.concatenate([[step == 0, seen.reward[0], over, True], psi])
            thought = mind.think(seen.frame, numbers[None])
            yield Scene(
                seen.frame[0].copy(),
                step,
                score,
                int(thought.actions[0]),
                psi,
                mind.components[:, 0].cpu().numpy(),
                mind.mu[0].cpu().numpy(),
                thought.responsibility,
            )
            if over:
                return
            seen = environment.step(thought.actions)
    finally:
        environment.close()


class Sheet:
    """Draws scenes of one agent."""

    def __init__(self, agent: Agent) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:
            raise UserError("pictures need Pillow; install it with: pip install pillow") from None
        self._image, self._draw = Image, ImageDraw
        self._text, self._small = ImageFont.load_default(14), ImageFont.load_default(11)
        self._game = agent.spec.id
        self._actions = action_names(agent)
        policies = [agent.population[i] for i in agent.mapping.components]
        self._names = [f"policy {p.index + 1}: {p.shaping}, discount {p.discount:g}" for p in policies]

    def draw(self, scene: Scene) -> Any:
        """A Pillow image: the game on the left, opinions on the right."""
        sheet = self._image.new("RGB", (GAME + PANEL + 3 * MARGIN, HEIGHT), PAPER)
        sheet.paste(self._picture(scene.frame), (MARGIN, MARGIN))
        pen, x, y = self._draw.Draw(sheet), GAME + 2 * MARGIN, MARGIN - 2
        entropy = float(-(scene.mu * np.log(np.maximum(scene.mu, 1e-12))).sum())
        pen.text((x, y), self._game, INK, self._text)
        pen.text((x, y + 20), f"score {scene.score:g}, step {scene.step}", INK, self._text)
        pen.text((x, y + 40), f"plays {self._actions[scene.action]}", INK, self._text)
        pen.text((x + PANEL, y + 22), f"entropy {entropy:.2f} nats", FAINT, self._small, anchor="ra")
        pen.text((x + PANEL, y + 42), "share in the action", FAINT, self._small, anchor="ra")
        m = len(scene.components)
        height = (HEIGHT - MARGIN - y - 66) / (m + 1)
        for i, opinion in enumerate(scene.components):
            tau, omega = scene.psi[i], scene.psi[m + i]
            title = f"{self._names[i]}; tau {tau:.1f}, omega {omega:.2f}"
            top = y + 66 + i * height
            self._opinion(pen, top, height, opinion, scene.action, title, FILLS[i % len(FILLS)])
            self._share(pen, top, scene.steering[i], FILLS[i % len(FILLS)])
        top = y + 66 + m * height
        self._opinion(pen, top, height, scene.mu, scene.action, "behavior: all together", MU)
        return sheet

    def _opinion(
        self, pen: Any, top: float, height: float, chances: np.ndarray, action: int, title: str, colour: str
    ) -> None:
        """A bar per action; the one that was taken has a mark."""
        x, bottom, room = GAME + 2 * MARGIN, top + height - 8, height - 26
        pen.text((x, top), title, INK, self._small)
        width = PANEL / len(chances)
        for i, chance in enumerate(chances):
            left = x + i * width
            pen.rectangle((left, bottom - max(1.0, room * float(chance)), left + width - 2, bottom), colour)
            if i == action:
                pen.rectangle((left, bottom + 2, left + width - 2, bottom + 4), INK)

    def _share(self, pen: Any, top: float, share: float, colour: str) -> None:
        """How much of the action is this component's doing."""
        x, width = GAME + 2 * MARGIN + PANEL - 90, 90
        pen.rectangle((x, top + 2, x + width, top + 11), None, FAINT)
        pen.rectangle((x, top + 2, x + width * min(1.0, max(0.0, float(share))), top + 11), colour)

    def _picture(self, frame: np.ndarray) -> Any:
        """What the agent sees, as a square; numbers that are no image become bars."""
        if frame.ndim == 3 and frame.shape[0] == 1:
            grey = frame[0] if frame.dtype == np.uint8 else 255.0 * np.clip(frame[0], 0.0, 1.0)
            picture = self._image.fromarray(grey.astype(np.uint8)).convert("RGB")
        elif frame.ndim == 3:
            picture = self._image.fromarray(_coloured(frame))
        else:
            picture = self._image.fromarray(_bars(frame.ravel()))
        return picture.resize((GAME, GAME), self._image.Resampling.NEAREST)


def _coloured(frame: np.ndarray) -> np.ndarray:
    """A channel per kind of thing, a colour per channel; the last one on top."""
    picture = np.full((*frame.shape[1:], 3), 245, np.uint8)
    for channel, there in enumerate(frame > 0):
        colour = FILLS[channel % len(FILLS)].lstrip("#")
        picture[there] = [int(colour[k : k + 2], 16) for k in (0, 2, 4)]
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


def save(pictures: Iterable[Any], path: Path, fps: float = 15.0) -> int:
    """Writes a GIF, or an MP4 where imageio and its ffmpeg are installed; returns the number of pictures."""
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise UserError(f"'{path}' should end in .gif or .mp4.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return _save_gif(pictures, path, fps) if path.suffix.lower() == ".gif" else _save_mp4(pictures, path, fps)


def _save_gif(pictures: Iterable[Any], path: Path, fps: float) -> int:
    few = [picture.quantize(64) for picture in pictures]
    few[0].save(path, save_all=True, append_images=few[1:], duration=round(1000 / fps), loop=0)
    return len(few)


def _save_mp4(pictures: Iterable[Any], path: Path, fps: float) -> int:
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise UserError(
            "an MP4 needs imageio with ffmpeg (pip install 'imageio[ffmpeg]'); a GIF needs nothing more."
        ) from None
    count = 0
    with imageio.get_writer(path, fps=fps, macro_block_size=2) as film:
        for picture in pictures:
            film.append_data(np.asarray(picture))
            count += 1
    return count
