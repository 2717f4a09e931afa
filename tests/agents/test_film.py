"""Films and the window: what they show, and that the files are what they say."""

from __future__ import annotations

import builtins
import dataclasses
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbc.agents import load_agent
from lbc.agents.film import Sheet, play, save
from lbc.agents.screen import screen_of
from lbc.agents.sheet import Palette, seen, short
from lbc.cli import main
from lbc.config import EnvironmentConfig
from lbc.environments import make

Image = pytest.importorskip("PIL.Image")


def test_a_film_shows_one_episode_and_who_steers(run: Path) -> None:
    agent = load_agent(run)
    scenes = list(play(agent, seed=3))
    assert [scene.step for scene in scenes] == list(range(len(scenes)))
    assert abs(scenes[-1].score) == 1.0 and all(scene.score == 0.0 for scene in scenes[:-1])
    for scene in scenes:
        np.testing.assert_allclose(scene.components.sum(-1), 1.0, rtol=1e-5)
        m = len(scene.components)
        np.testing.assert_allclose(scene.psi[m:] @ scene.components, scene.mu, atol=1e-5)
        expected = scene.psi[m:] * scene.components[:, scene.action] / scene.mu[scene.action]
        np.testing.assert_allclose(scene.steering, expected, atol=1e-4)
    assert len(list(play(agent, seed=3, steps=4))) == 4


def pictures(count: int) -> list[Any]:
    """A square that moves over a ground, each picture with the palette as it was by then."""
    palette, found = Palette(), []
    for i in range(count):
        picture = np.full((40, 60, 3), 200, np.uint8)
        picture[5:15, 4 * i : 4 * i + 10] = (255, 10 * i, 0)  # a new colour every time
        image = Image.fromarray(palette.numbers(picture))
        image.putpalette(palette.bytes())
        found.append(image)
    return found


def test_a_gif_shows_exactly_what_was_drawn(tmp_path: Path) -> None:
    """Stored is only what has changed, and one palette for all; read back, nothing is missing."""
    drawn = [*pictures(12), pictures(12)[-1]]  # the last one twice: nothing is new
    assert save(drawn, tmp_path / "a.gif", fps=15.0) == 13
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 13 and film.size == (60, 40) and film.info["loop"] == 0
        durations = []
        for i, picture in enumerate(drawn):
            film.seek(i)
            durations.append(film.info["duration"])
            assert (np.asarray(film.convert("RGB")) == np.asarray(picture.convert("RGB"))).all(), i
    assert sum(durations) == pytest.approx(13_000 / 15, abs=10), "rounding does not add up"


def test_an_mp4_shows_what_was_drawn(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    drawn = pictures(9)
    assert save(drawn, tmp_path / "a.MP4", fps=12.5) == 9
    with av.open(str(tmp_path / "a.MP4")) as film:
        stream = film.streams.video[0]
        assert stream.codec_context.name == "h264" and stream.average_rate == 12.5
        frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(stream)]
    assert len(frames) == 9
    for frame, picture in zip(frames, drawn, strict=True):
        assert np.abs(frame - np.asarray(picture.convert("RGB"))).mean() < 6.0


def test_the_command_writes_either(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "film.gif"
    assert main(["play", str(run), "--out", str(out), "--way", "component_2", "--steps", "5"]) == 0
    with Image.open(out) as film:
        assert film.n_frames == 5 and film.size[0] > film.size[1]
    assert "5 steps of catch" in capsys.readouterr().out
    if importlib.util.find_spec("av"):
        assert main(["play", str(run), "--out", str(tmp_path / "film.mp4"), "--steps", "3"]) == 0
        assert (tmp_path / "film.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize(
    "wrong",
    [["--out", "film.avi"], ["--way", "favorite"], ["--steps", "0"], ["--fps", "0"], ["--fps", "nan"]],
)
def test_bad_wishes_get_one_sentence(run: Path, wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", str(run), *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("package", "wish"), [("av", ["--out", "film.mp4"]), ("pygame", ["--window"])])
def test_a_missing_package_is_named_before_anything_is_played(
    run: Path,
    package: str,
    wish: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    importing, finding = builtins.__import__, importlib.util.find_spec

    def without(name: str, *more: Any, **others: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return importing(name, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else finding(name))
    assert main(["play", str(run), *wish]) == 2
    said = capsys.readouterr().err
    assert "lbc[video]" in said and said.count("\n") == 1


@pytest.mark.parametrize("shape", [(1, 84, 84), (4, 10, 10), (6,)])
def test_every_kind_of_frame_can_be_drawn(run: Path, shape: tuple[int, ...]) -> None:
    agent = load_agent(run)
    scene = next(iter(play(agent)))
    other = dataclasses.replace(scene, frame=np.random.default_rng(0).random(shape))
    sheet = Sheet(agent)
    nothing = dataclasses.replace(other, frame=0 * other.frame)
    assert sheet.draw(other).tobytes() != sheet.draw(nothing).tobytes()
    whole = np.asarray(sheet.draw(other).convert("RGB"))
    assert not (whole == 0).all(-1).any() or shape[0] == 1, "no colour is left out"


def test_bars_are_as_high_as_chances_and_shares_as_wide(run: Path) -> None:
    agent = load_agent(run)
    scene = next(iter(play(agent)))
    chances = np.array([[0.0, 0.5, 1.0]] * 3)
    scene = dataclasses.replace(scene, components=chances, mu=chances[0], steering=np.array([0.0, 0.5, 1.0]))
    sheet = Sheet(agent)
    drawn = np.asarray(sheet.draw(scene))
    orange = drawn == sheet.palette.number("#D55E00")
    heights = sorted({int(n) for n in orange[:, 376:].sum(0)} - {0})
    bar = [n for n in heights if n > 12]
    assert bar[1] == pytest.approx(2 * bar[0], abs=9)  # a share of eight rows may lie in the same column
    green = (drawn == sheet.palette.number("#009E73")).sum(1)
    assert green.max() >= 88, "all of a share"


def test_a_palette_runs_out_gracefully() -> None:
    palette = Palette()
    colours = np.stack(np.meshgrid(*[np.arange(0, 256, 32, dtype=np.uint8)] * 3), -1).reshape(1, -1, 3)  # 512
    found = palette.numbers(colours)
    assert found.min() >= 1 and (palette.numbers(colours) == found).all()
    shown = np.frombuffer(palette.bytes(), np.uint8).reshape(256, 3)[found].astype(int)
    exact = (shown == colours).all(-1)
    assert exact.sum() == 255, "as many as there is room for"
    distance = ((shown[0, :, None] - colours[0, exact[0]].astype(int)) ** 2).sum(-1)
    wanted = ((colours[0, :, None].astype(int) - colours[0, exact[0]].astype(int)) ** 2).sum(-1).min(-1)
    assert (((shown - colours) ** 2).sum(-1)[0] == wanted).all() and (distance.min(-1) == 0).all(), (
        "the nearest"
    )


def test_short_names_of_actions() -> None:
    names = ["noop", "fire", "upright", "downleftfire", "action 12", "jump"]
    assert [short(name) for name in names] == ["-", "F", "UR", "DLF", "12", "jump"]


def test_the_screen_is_the_game_that_is_played() -> None:
    """The twin sees what the agent sees, in colour and larger, for as long as the episode lasts."""
    config = EnvironmentConfig(id="ALE/Breakout-v5", sticky_actions=0.25)
    game, screen = make(config, 1), screen_of(config)
    assert screen is not None and screen_of(EnvironmentConfig(id="catch")) is None
    step, shown = game.reset(7), screen.reset(7)
    chance = np.random.default_rng(0)
    for _ in range(150):
        assert shown is not None and shown.shape == (210, 160, 3)
        grey = Image.fromarray(shown).convert("L").resize(step.frame.shape[2:][::-1], Image.Resampling.BOX)
        assert np.abs(np.asarray(grey, float) - step.frame[0, 0]).mean() < 8.0
        if step.terminated[0]:
            break
        actions = chance.integers(0, game.spec.num_actions, 1)
        step = game.step(actions)
        shown = screen.step(actions, step)
    other = dataclasses.replace(step, reward=step.reward + 1)
    assert screen.step(np.array([0]), other) is None, "it notices that it is in another game"
    game.close()


def test_what_an_agent_sees_of_a_grey_frame() -> None:
    assert seen(np.full((1, 2, 2), 101, np.uint8)).tolist() == [[[100] * 3] * 2] * 2


@pytest.fixture
def pygame(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield found
    found.display.quit()


def press(pygame: Any, *keys: int) -> None:
    for key in keys:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))


def test_keys_of_the_window(pygame: Any) -> None:
    from lbc.agents.window import Window

    window, shown = Window("catch", 200.0), []
    for picture in window.show(pictures(12)):
        shown.append(picture)
        if len(shown) == 2:  # then two single steps, and on
            press(pygame, pygame.K_SPACE, pygame.K_RIGHT, pygame.K_RIGHT)
        if len(shown) == 4:
            assert window.paused
            press(pygame, pygame.K_UP, pygame.K_UP, pygame.K_DOWN, pygame.K_SPACE)
        if len(shown) == 6:
            assert not window.paused and window.speed == pytest.approx(1.5)
            assert "1.5 times as fast" in pygame.display.get_caption()[0]
        if len(shown) == 9:
            press(pygame, pygame.K_ESCAPE)
    assert len(shown) == 9 and window.closed


def test_a_paused_window_waits_and_a_running_one_keeps_time(pygame: Any) -> None:
    from lbc.agents.window import Window

    window, begun = Window("catch", 50.0), time.monotonic()
    assert sum(1 for _ in window.show(pictures(11))) == 11
    assert time.monotonic() - begun >= 0.2, "eleven pictures at 50 a second"
    window, begun = Window("catch", 1000.0), time.monotonic()
    for i, _ in enumerate(window.show(pictures(3))):
        if i == 0:
            press(pygame, pygame.K_SPACE)
            pygame.time.set_timer(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_q), 300, 1)
    assert time.monotonic() - begun > 0.25, "it waited for a key"


def test_the_window_shows_the_picture(pygame: Any) -> None:
    from lbc.agents.window import Window

    for picture in Window("catch", 1000.0).show(pictures(3)):
        on_screen = pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)
        assert (on_screen == np.asarray(picture.convert("RGB"))).all()


def test_the_command_plays_on_in_a_window(
    run: Path, pygame: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "film.gif"
    wish = ["play", str(run), "--window", "--steps", "25", "--fps", "1000", "--out", str(film)]
    assert main(wish) == 0
    assert "25 steps of catch, scores" in capsys.readouterr().out, "more than one episode"
    with Image.open(film) as found:
        assert found.n_frames == 25


def test_no_screen_is_a_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pygame = pytest.importorskip("pygame")
    pygame.display.quit()
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    assert main(["play", str(run), "--window"]) == 2
    said = capsys.readouterr().err
    assert "no window can be opened here" in said and said.count("\n") == 1
