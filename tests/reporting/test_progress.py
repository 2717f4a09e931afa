import io
import math

from lbc.reporting.progress import LiveProgress, PlainProgress, clock, make_progress
from lbc.types import ProgressSnapshot


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def snapshot(fraction: float, score: float = 1.5) -> ProgressSnapshot:
    return ProgressSnapshot(fraction, int(fraction * 1e6), fraction * 600, 1666.7, 12, score, 0.693)


def test_plain_lines_are_rare_and_the_last_one_is_never_lost() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream, interval=3600)
    for percent in range(1, 101):
        progress.update(snapshot(percent / 100))
    progress.stop()
    progress.stop()
    first, last = stream.getvalue().splitlines()
    assert " ".join(first.split()) == "1% 10,000 frames 1,667/s score 1.50 entropy 0.69 9:54 left"
    assert " ".join(last.split()) == "100% 1,000,000 frames 1,667/s score 1.50 entropy 0.69 0:00 left"


def test_plain_lines_come_at_their_interval() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream, interval=0)
    for _ in range(3):
        progress.update(snapshot(0.5))
    assert len(stream.getvalue().splitlines()) == 3


def test_unknown_numbers_are_dashes() -> None:
    stream = io.StringIO()
    PlainProgress(stream).update(ProgressSnapshot(0.0, 0, 0.0, 0.0, 0, math.nan, math.nan))
    assert " ".join(stream.getvalue().split()) == "0% 0 frames 0/s score - entropy - - left"


def test_a_terminal_gets_the_live_display_and_anything_else_lines() -> None:
    assert isinstance(make_progress(io.StringIO()), PlainProgress)
    stream = Terminal()
    progress = make_progress(stream)
    assert isinstance(progress, LiveProgress)
    progress.update(snapshot(0.42, score=-7.25))
    progress.stop()
    for part in ("42%", "1,667", "-7.25", "0.69", "5:48"):
        assert part in stream.getvalue()


def test_clock() -> None:
    assert [clock(5), clock(245), clock(3723)] == ["0:05", "4:05", "1:02:03"]
