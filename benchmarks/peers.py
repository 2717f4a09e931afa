"""How fast peers and this package train on one Atari game, all on this machine and in one run.

    python benchmarks/peers.py                                      # Pong, a minute each
    python benchmarks/peers.py --only sb3-ppo --seconds 20 --json peers.json

The bare emulator is measured before and after all peers; if the two differ, something else was running.
A peer starts, trains until it is warm, is timed from outside for a window that begins and ends with one
of its own reports, and is stopped with all its processes.  Peers live in virtual environments of their
own under ``.venvs``, which the first call sets up.  A peer that fails is a row with the reason.

What the columns count: frames are the emulator's, four to a step.  Passes: how often a policy learns from
a sample.  Learner samples/s are frames/s x policies x passes, so they are in frames, too; the next column
has them in units of the best recurrent peer's.  Memory is the highest sum of proportional set sizes over all
processes of a peer, from its start to its end.

To add a peer, add a `Peer` to `PEERS`: what to install, what to call, and how to read its frames.
Needs Linux: processes and memory are read from /proc.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lbc.cards import resolve
from lbc.environments.atari import ids
from lbc.environments.cores import usable_cores
from lbc.errors import UserError, nearest

ROOT = Path(__file__).resolve().parents[1]
VENVS = ROOT / ".venvs"
CONSTRAINTS = ROOT / "constraints.txt"
LOG = "output.log"  # in the folder of a peer's run: all that it printed
MARK = "LBC_PEERS_RUN"  # environment variable that all processes of a run inherit: its folder

WARM_UP = 1 / 6  # of the window, between the first report and the beginning of the window
EMULATOR_SECONDS = 10.0
_STALL_SECONDS = 600.0  # without new frames, start included: given up
_GRACE_SECONDS = 15.0  # between SIGTERM and SIGKILL
_POLL_SECONDS = 0.05
_MEMORY_SECONDS = 2.0  # between two looks at the memory
_TAIL_BYTES = 1 << 16  # of a file, enough for its last whole line


class PeerError(Exception):
    """One peer cannot be measured; the sentence becomes its row."""


# How a peer reports: frames learned from so far, read from the folder of its run; None before it learns.
Reader = Callable[[Path], int | None]


def printed_frames(folder: Path) -> int | None:
    """The newest line ``frames N`` that the peer has printed."""
    found = re.findall(r"^frames (\d+)$", _tail(folder / LOG), re.MULTILINE)
    return int(found[-1]) or None if found else None


def reported_frames(folder: Path) -> int | None:
    """``frames`` in the last whole line of metrics.jsonl, once there have been updates."""
    lines = _tail(folder / "metrics.jsonl").rpartition("\n")[0].splitlines()
    report = json.loads(lines[-1]) if lines else {}
    return report["frames"] if report.get("updates") else None


def _tail(path: Path) -> str:
    """The last bytes of a file as text; nothing if there is no such file yet."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


@dataclass(frozen=True)
class Peer:
    """Who is measured, and how."""

    name: str
    network: str
    policies: int  # 0: nothing learns
    passes: int  # uses of every sample
    command: tuple[str, ...]  # '{python}', '{env}' and '{out}' (the folder of its run) are filled in
    frames: Reader = printed_frames
    venv: str = ""  # folder under .venvs; without one the peer runs in this very interpreter
    packages: tuple[tuple[str, ...], ...] = ()  # for the virtual environment, one call of pip each
    constrained: bool = True  # to the versions in constraints.txt

    def python(self) -> Path:
        return VENVS / self.venv / "bin" / "python" if self.venv else Path(sys.executable)


def pinned(package: str) -> str:
    """``package==version`` as in constraints.txt."""
    return next(line for line in CONSTRAINTS.read_text().split() if line.startswith(f"{package}=="))


def this_package(name: str, preset: str = "atari", settings: Sequence[str] = ()) -> Peer:
    """``lbc train``; ``settings`` are for ``--set``.  Its frames are those played; at most a batch waits.

    Peers do not evaluate while they train, so neither does this.
    """
    settings = ("run.report_seconds=30", "run.evaluation_episodes=0", *settings)
    config = resolve(preset, settings)
    recurrent = f" + LSTM {config.model.lstm_units}" if config.model.lstm_units else ""
    return Peer(
        name=name,
        network=f"{config.model.torso} {config.model.torso_units}{recurrent}",
        policies=config.population.size,
        passes=config.buffer.replay,
        command=(
            *("{python}", "-m", "lbc", "train", preset, "--env", "{env}", "--out", "{out}"),
            *("--set", *settings),
        ),
        frames=reported_frames,
    )


def _script(name: str, *arguments: str) -> tuple[str, ...]:
    return ("{python}", str(ROOT / "benchmarks" / name), *arguments, "--env", "{env}")


# The peers' network and as many games, else the paper's values: replay 2, burn-in 40, auxiliary tasks.
AS_PEERS = ("model.head_units=0", "actor.num_envs=32", "run.device=cpu")

_TORCH = ("torch", "numpy")
_SB3 = ("stable-baselines3==2.9.2", "gymnasium", "ale-py", "opencv-python-headless")

EMULATOR = Peer("emulator", "none, random actions", 0, 0, _script("peer_emulator.py"))
PEERS = (
    Peer(
        name="sb3-ppo",
        network="Nature CNN 512",
        policies=1,
        passes=4,
        command=_script("peer_sb3.py", "ppo"),
        venv="sb3",
        packages=(_TORCH, _SB3),
    ),
    Peer(
        name="sb3-recurrent-ppo",
        network="Nature CNN 512 + LSTM 256",
        policies=1,
        passes=4,
        command=_script("peer_sb3.py", "recurrent"),
        venv="sb3",
        packages=(_TORCH, (*_SB3, "sb3-contrib==2.9.2")),
    ),
    Peer(
        name="sample-factory",
        network="Nature CNN 512 + LSTM 256",
        policies=1,
        passes=1,
        command=(*_script("peer_sample_factory.py"), "--out", "{out}"),
        venv="sample-factory",
        packages=((pinned("torch"), "numpy<2"), ("sample-factory==2.1.1", pinned("ale-py"), pinned("torch"))),
        constrained=False,  # it needs an older gymnasium and an older numpy
    ),
    this_package("lbc", settings=(*AS_PEERS, "run.precision=float32")),
    this_package("lbc-bfloat16", settings=(*AS_PEERS, "run.precision=bfloat16")),
    this_package("lbc-laptop", "atari-laptop", ("run.device=cpu", "run.runtime=local")),
)


# Processes.


class Process(NamedTuple):
    """A line of the process table; pid and start together are never used twice."""

    pid: int
    started: int
    parent: int
    session: int


def processes() -> list[Process]:
    """All that run on this machine; those that have ended and only wait to be collected do not."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, _, session, *rest = path.read_text(errors="replace").rpartition(")")[2].split()
            if state not in "ZX":
                found.append(Process(int(path.parent.name), int(rest[15]), int(parent), int(session)))
    return found


def tree(root: int, folder: Path | None = None) -> list[Process]:
    """The session that ``root`` leads, whoever is marked with ``folder``, and all that descend from them.

    Orphans are in it, and with a mark even those that have left the session.
    """
    everybody = processes()
    members = {process.pid for process in everybody if root in (process.pid, process.session)}
    members |= {process.pid for process in everybody if folder and _marked(process, folder)}
    while more := {process.pid for process in everybody if process.parent in members} - members:
        members |= more
    return [process for process in everybody if process.pid in members]


def _marked(process: Process, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARK}={folder}".encode() in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    return False


def memory(members: Sequence[Process]) -> int:
    """Sum of their proportional set sizes in bytes: a page that n processes share counts 1/n in each."""
    total = 0
    for process in members:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            total += sum(int(kilobytes) for kilobytes in re.findall(r"^Pss:\s+(\d+) kB$", text, re.MULTILINE))
    return 1024 * total


def stop(leader: subprocess.Popen[bytes], folder: Path | None = None) -> None:
    """Ask, wait, insist; returns when the whole tree is gone.

    Only the leader's session is asked.  Daemons beyond it end by themselves when their clients have, and
    some must: torch's removes shared memory that would stay behind otherwise.
    """
    known: dict[tuple[int, int], Process] = {}

    def left() -> list[Process]:
        known.update({process[:2]: process for process in tree(leader.pid, folder)})
        return [process for process in processes() if process[:2] in known]

    asked = [process for process in left() if process.session == leader.pid]
    _send(asked, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    with contextlib.suppress(KeyboardInterrupt):
        while left() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    while remaining := left():
        _send(remaining, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    leader.wait()


def _send(members: Sequence[Process], number: signal.Signals) -> None:
    for process in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


# Measuring.


class Report(NamedTuple):
    """What a peer had done when this was seen."""

    seconds: float
    frames: int


def window(reports: Sequence[Report], seconds: float) -> Report | None:
    """Length and frames of the measured window; None until it is over.

    It begins with the first report after the warm-up and ends with the first one at least ``seconds``
    later.  A peer that plays and learns in turns reports once a turn, so whole turns are measured.
    """
    warm = (report for report in reports if report.seconds >= reports[0].seconds + WARM_UP * seconds)
    begin = next(warm, None)
    if begin is None or reports[-1].seconds - begin.seconds < seconds:
        return None
    return Report(reports[-1].seconds - begin.seconds, reports[-1].frames - begin.frames)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    network: str
    policies: int
    passes: int
    frames: int = 0  # in the window
    seconds: float = 0.0
    memory_bytes: int = 0
    error: str = ""

    @property
    def frames_per_second(self) -> float | None:
        return self.frames / self.seconds if self.seconds else None

    @property
    def learner_samples_per_second(self) -> float | None:
        speed = self.frames_per_second
        return speed * self.policies * self.passes if speed and self.policies else None

    def plain(self) -> dict[str, Any]:
        """Everything, for JSON."""
        names = ("frames_per_second", "learner_samples_per_second")
        return {**asdict(self), **{name: getattr(self, name) for name in names}}


def row(peer: Peer, **figures: Any) -> Row:
    return Row(peer.name, peer.network, peer.policies, peer.passes, **figures)


def measure(peer: Peer, env: str, seconds: float, folder: Path) -> Row:
    """Starts the peer, times it and stops it, whatever happens; ``folder`` is for what it writes."""
    values = {"{python}": str(peer.python()), "{env}": env, "{out}": str(folder)}
    command = [values.get(part, part) for part in peer.command]
    with (folder / LOG).open("ab") as log:
        try:
            leader = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, MARK: str(folder)},
                start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"'{command[0]}' does not start: {error.strerror}") from None
    try:
        return _watch(peer, leader, seconds, folder)
    finally:
        stop(leader, folder)


def _watch(peer: Peer, leader: subprocess.Popen[bytes], seconds: float, folder: Path) -> Row:
    reports: list[Report] = []
    peak = 0
    news = looked = time.monotonic()
    while True:
        ended = leader.poll()
        now = time.monotonic()
        frames = peer.frames(folder)
        if frames is not None and (not reports or frames > reports[-1].frames):
            reports.append(Report(now, frames))
            news = now
            if over := window(reports, seconds):
                peak = max(peak, memory(tree(leader.pid, folder)))
                return row(peer, frames=over.frames, seconds=over.seconds, memory_bytes=peak)
        if ended is not None:
            raise PeerError(f"ended with exit code {ended}: {last_words(folder / LOG)}")
        if now - news > _STALL_SECONDS:
            raise PeerError(f"no new frames in {_STALL_SECONDS:.0f} s: {last_words(folder / LOG)}")
        if now - looked > _MEMORY_SECONDS:
            looked = now
            peak = max(peak, memory(tree(leader.pid, folder)))
        time.sleep(_POLL_SECONDS)


def last_words(log: Path) -> str:
    """The last line that is not a report."""
    text = re.sub(r"\x1b\[[\d;]*m", "", _tail(log))  # without colours
    lines = [line.strip() for line in text.splitlines() if not line.startswith("frames ")]
    return next((line for line in reversed(lines) if line), "it said nothing")


# Virtual environments.


def prepare(peer: Peer) -> None:
    """Sets up the peer's virtual environment where it, or a package in it, is missing."""
    if not peer.venv or _has_packages(peer):
        return
    folder = VENVS / peer.venv
    print(f"{peer.name}: setting up {folder.relative_to(ROOT)}", flush=True)
    pip = [str(peer.python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["-c", str(CONSTRAINTS)] if peer.constrained else []
    steps = [[sys.executable, "-m", "venv", str(folder)]]
    steps += [[*pip, *packages] for packages in peer.packages]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise PeerError(f"cannot be installed: {' '.join(errors) or f'exit code {done.returncode}'}")


_CHECK = """
import sys
from importlib.metadata import version
for package in sys.argv[1:]:
    name, _, wanted = package.partition("==")
    sys.exit(1) if wanted and version(name).partition("+")[0] != wanted else version(name)
"""


def _has_packages(peer: Peer) -> bool:
    names = [package.partition("<")[0] for packages in peer.packages for package in packages]
    command = [str(peer.python()), "-c", _CHECK, *names]
    return peer.python().exists() and not subprocess.run(command, capture_output=True).returncode


# Results.


def table(rows: Sequence[Row]) -> str:
    """Markdown, with columns wide enough to be read as they are."""
    head = ("peer", "frames/s", "policies", "passes", "learner samples/s", "ratio", "memory", "network")
    best = best_recurrent(rows)
    cells = [head, *(_cells(row, best) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    left = (0, len(head) - 1)  # columns of text; the others are figures
    lines = [
        " | ".join(f"{text:{'<' if i in left else '>'}{widths[i]}}" for i, text in enumerate(line))
        for line in cells
    ]
    rule = "|".join("-" * (width + 1) + ("-" if i in left else ":") for i, width in enumerate(widths))
    failures = [f"{row.name} failed: {row.error}" for row in rows if row.error]
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:]), *failures])


def best_recurrent(rows: Sequence[Row]) -> float | None:
    """Learner samples per second of the fastest peer with a recurrent network, this package left out."""
    others = [row for row in rows if "LSTM" in row.network and not row.name.startswith("lbc")]
    return max((row.learner_samples_per_second or 0.0 for row in others), default=0.0) or None


def _cells(row: Row, best: float | None) -> tuple[str, ...]:
    def figure(value: float | None) -> str:
        return "failed" if row.error else "-" if value is None else f"{value:,.0f}"

    samples = row.learner_samples_per_second
    return (
        row.name,
        figure(row.frames_per_second),
        str(row.policies or "-"),
        str(row.passes or "-"),
        figure(samples),
        f"{samples / best:.2f}" if samples and best else "-",
        "-" if row.error else f"{row.memory_bytes / 2**30:.2f} GiB",
        row.network,
    )


def machine() -> dict[str, Any]:
    """What the figures depend on, besides the peers."""
    models = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": models[0] if models else platform.machine(), "usable_cores": usable_cores()}


def measured(peer: Peer, env: str, seconds: float) -> Row:
    """The peer's row; a failure is one, too."""
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as folder:
        try:
            prepare(peer)
            print(f"{peer.name}: running", flush=True)
            return measure(peer, env, seconds, Path(folder))
        except PeerError as error:
            print(_tail(Path(folder) / LOG), file=sys.stderr, end="")
            return row(peer, error=str(error))


def chosen(names: Sequence[str] | None, peers: Sequence[Peer] = PEERS) -> list[Peer]:
    """Those named, in the order of ``peers``; by default all."""
    known = [peer.name for peer in peers]
    for name in names or ():
        if name not in known:
            raise UserError(f"'{name}' is none of {', '.join(known)}.{nearest(name, known)}")
    return [peer for peer in peers if not names or peer.name in names]


def compare(peers: Sequence[Peer], env: str, seconds: float, out: Path | None = None) -> list[Row]:
    """Measures the emulator, all ``peers`` in turn and the emulator again; ``out`` is rewritten each time."""
    brief = min(seconds, EMULATOR_SECONDS)
    before, after = (replace(EMULATOR, name=f"emulator, {when}") for when in ("before", "after"))
    runs = [(before, brief), *((peer, seconds) for peer in peers), (after, brief)]
    rows: list[Row] = []
    for peer, length in runs:
        rows.append(measured(peer, env, length))
        if out:
            result = {"env": env, "machine": machine(), "rows": [row.plain() for row in rows]}
            out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Training speed of peers on Atari, on this machine.")
    names = ", ".join(peer.name for peer in PEERS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"some of: {names}")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the measured window of each peer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    parser.add_argument("--env", default="ALE/Pong-v5")
    options = parser.parse_args(arguments)
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.env not in ids():
            raise UserError(f"'{options.env}' is not an Atari game.{nearest(options.env, ids())}")
        if not Path("/proc/self/smaps_rollup").exists():
            raise UserError("this benchmark needs Linux: it reads processes and memory from /proc.")
        if not options.seconds > 0:
            raise UserError(f"--seconds is {options.seconds:g}, but must be positive.")
        rows = compare(chosen(options.only), options.env, options.seconds, options.json)
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        print(f"peers: {error}", file=sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGTERM, previous)
    print(table(rows))
    return 1 if any(row.error for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
