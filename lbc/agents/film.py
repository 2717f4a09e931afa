"""Who is steering?  An episode as a film: the game, and beside it every policy's opinion.

::

    scenes = play(agent, seed=1)                # one by one, as the episode goes
    save(map(Sheet(agent).draw, scenes), Path("pong.gif"))

It needs Pillow, and for an MP4 PyAV (the extra `video`).  However long a film is, it takes no more memory.
"""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from lbc.agents.scenes import Scene, play
from lbc.agents.sheet import Sheet, action_names
from lbc.errors import UserError, missing_extra

__all__ = ["FPS", "Scene", "Sheet", "action_names", "can_save", "play", "save"]

FPS = 15.0  # Atari at its own speed: 60 frames a second, four a step
_SHORTEST = 2  # hundredths of a second; browsers slow down what is shorter


def can_save(path: Path) -> None:
    """Says what is wrong before an episode has been played in vain."""
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise UserError(f"'{path}' should end in .gif or .mp4.")
    if path.suffix.lower() == ".mp4" and importlib.util.find_spec("av") is None:
        raise missing_extra("PyAV, which writes MP4,", "video")


def save(pictures: Iterable[Any], path: Path, fps: float = FPS) -> int:
    """Writes a GIF or an MP4, as the path ends; returns the number of pictures."""
    can_save(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return (_save_gif if path.suffix.lower() == ".gif" else _save_mp4)(pictures, path, fps)


def _save_gif(pictures: Iterable[Any], path: Path, fps: float) -> int:
    """Of each picture only what is new; all share the last one's palette, which holds those of the others."""
    from PIL import Image
    from PIL.GifImagePlugin import getdata

    count, before, palette = 0, np.zeros((0, 0), np.uint8), bytes(768)
    with path.open("wb") as file:
        for picture in pictures:
            now, palette = np.asarray(picture), picture.palette.tobytes()
            if not count:
                size = struct.pack("<HH", *picture.size)
                file.write(b"GIF89a" + size + bytes((0xF7, 0, 0)) + palette)
                file.write(b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")  # for ever
            new = now != before if count else np.ones(now.shape, bool)
            rows, columns = (_extent(np.asarray(new.any(axis))) for axis in (1, 0))
            piece = Image.fromarray(np.where(new, now, 0)[rows, columns])
            piece.putpalette(palette)
            last, until = (round(100 * n / min(fps, 100 / _SHORTEST)) for n in (count, count + 1))
            where = (columns.start, rows.start)
            for data in getdata(piece, where, duration=10 * (until - last), transparency=0, disposal=1):
                file.write(data)
            before, count = now, count + 1
        file.write(b";")
        file.seek(13)
        file.write(palette)
    return count


def _extent(there: np.ndarray) -> slice:
    """From the first to the last; one pixel where nothing is."""
    places = there.nonzero()[0]
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 1)


def _save_mp4(pictures: Iterable[Any], path: Path, fps: float) -> int:
    """H.264 as every browser and player knows it."""
    import av

    count = 0
    with av.open(str(path), "w", options={"movflags": "faststart"}) as film:
        stream: Any = film.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "18", "preset": "veryfast"}
        for picture in pictures:
            if not count:
                stream.width, stream.height = picture.size
            frame = av.VideoFrame.from_ndarray(np.asarray(picture.convert("RGB")), format="rgb24")
            film.mux(stream.encode(frame))
            count += 1
        film.mux(stream.encode(None))
    return count
