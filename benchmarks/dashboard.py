"""The dashboard under load, in a real browser: many long runs, and minutes of live updates.

    python benchmarks/dashboard.py [--runs 200] [--points 100000] [--minutes 10] [--json FILE]

It writes some 14 MB per run of 100,000 reports into a temporary folder, ten different curves over and over,
and removes them at the end.  Five runs report all that the page can draw, regions and losses included (100 MB
each, 2.8 GB in all), and get a new report every second.  It needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

if __name__ == "__main__":  # started as a file: the checkout need not be installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.chromium import ARGUMENTS, CHROMIUM

CURVES, LIVE = 10, 5
SAMPLE_SECONDS = 10.0
CONFIG = '[environment]\nid = "ALE/Pong-v5"\n[run]\nseed = {seed}\nframes = 400000000\n'
# Marks the moments at which the list, the first curve (a sketch) and the first chart are there.
MOMENTS = """
const moments = { list: "#runs li", curve: "#score polyline, #score .main-svg", chart: "#score .main-svg" };
new MutationObserver(() => {
  for (const [name, place] of Object.entries(moments)) {
    if (!performance.getEntriesByName(name).length && document.querySelector(place)) performance.mark(name);
  }
}).observe(document, { subtree: true, childList: true });
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if CHROMIUM is None:
        print("no Chromium is installed.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="lbc-dashboard-") as folder:
        begun = time.monotonic()
        size = write_runs(Path(folder), options.runs, options.points)
        print(f"{options.runs} runs of {options.points:,} reports, {size / 1e9:.1f} GB, ", end="")
        print(f"written in {time.monotonic() - begun:.0f} s")
        done = threading.Event()
        writer = threading.Thread(target=grow, args=(Path(folder), options.points, done))
        writer.start()
        command = [sys.executable, "-m", "lbc", "dashboard", folder, "--port", "0"]
        begun = time.monotonic()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            print(f"server ready after {time.monotonic() - begun:.1f} s, {resident(server.pid):.0f} MB")
            found = measure(address, server.pid, options)
        finally:
            done.set()
            writer.join()
            server.terminate()
            server.wait(300)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def report(frames: int, curve: int, chance: random.Random, whole: bool = False) -> str:
    share = frames / 400_000_000
    score = round(40 * (1 - math.exp(-5 * share)) - 21 + curve / 10 + chance.gauss(0, 1), 2)
    entropy = f'"behavior_entropy":{1.7 - min(share, 1.5):.4f}'
    numbers = f'"frames":{frames},"seconds":{frames // 60000},"score_mean":{score},{entropy}'
    speed = f'"frames_per_second":{60000 + 1000 * chance.gauss(0, 1):.0f}'
    lag = f'"policy_lag":{3.5 + chance.random():.2f}'
    return f"{{{numbers},{speed},{lag}{everything(chance) if whole else ''}}}\n"


def everything(chance: random.Random) -> str:
    """What three policies, six dimensions of psi and the clock report besides."""
    first, second = chance.uniform(0.2, 0.4), chance.uniform(0.2, 0.4)
    losses = ",".join(f'"loss_{kind}":{chance.gauss(1, 0.1):.4f}' for kind in ("value", "q", "policy"))
    chosen = [[int(20 * chance.random() ** 3) for _ in range(20)] for _ in range(6)]
    names = [f"{letter}_{i}" for letter in ("tau", "omega") for i in (1, 2, 3)]
    dimensions = [{"name": name, "chosen": counts} for name, counts in zip(names, chosen, strict=True)]
    time_spent = f'"time":{{"act":{first:.3f},"learn":{second:.3f},"wait":{1 - first - second:.3f}}}'
    shares = f'"responsibility":[{first:.3f},{second:.3f},{1 - first - second:.3f}]'
    policies = ",".join(3 * [f"{{{losses}}}"])
    return f',{time_spent},{shares},"policies":[{policies}],"dimensions":{json.dumps(dimensions)}'


def write_runs(folder: Path, runs: int, points: int) -> int:
    texts = []
    for curve in range(min(LIVE + CURVES, runs)):
        chance = random.Random(curve)
        every = (report(i * 4000, curve, chance, curve < LIVE) for i in range(points))
        texts.append("".join(every).encode())
    size = 0
    for i in range(runs):
        run = folder / f"pong-{i:03}"
        run.mkdir()
        (run / "config.toml").write_text(CONFIG.format(seed=i))
        text = texts[i if i < LIVE else LIVE + (i - LIVE) % CURVES]
        size += (run / "metrics.jsonl").write_bytes(text)
        if i >= LIVE:
            (run / "summary.json").write_text('{"outcome": "finished"}')
    return size


def measure(address: str, pid: int, options: argparse.Namespace) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    runs, seconds = timed(f"{address}api/runs")
    first = next(run["id"] for run in runs["runs"] if run["state"] == "running")
    curve, curve_seconds = timed(f"{address}api/runs/{first}")
    print(f"list of runs {1000 * seconds:.0f} ms; a curve {1000 * curve_seconds:.0f} ms, ", end="")
    print(f"{len(curve['columns']['frames'])} of {options.points:,} points")
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.add_init_script(MOMENTS)
        loads = [load(page, address), load(page, address)]
        for name, times in zip(("first visit", "again"), loads, strict=True):
            print(f"{name}: " + ", ".join(f"{key} {value:.2f} s" for key, value in times.items()))
        for _ in range(2):  # three runs compared while they grow
            page.keyboard.press("Space")
            page.keyboard.press("j")
        page.keyboard.press("l")  # and their losses
        samples = watch(page, pid, options)
        browser.close()
    end = samples[-1]["seconds"]
    for name, unit in (("heap", "JS heap, MB"), ("server", "server, MB"), ("nodes", "nodes of the page")):
        lowest = [
            min((s[name] for s in samples if start <= s["seconds"] < start + 60), default=math.nan)
            for start in (60, end / 2, end - 50)
        ]
        print(f"{unit}: lowest of the second minute, half-way and of the last minute ", end="")
        print(", ".join(f"{value:,.1f}" for value in lowest))
    print(f"errors in the console: {len(wrong)}", *wrong[:3])
    return {"loads": loads, "list": seconds, "curve": curve_seconds, "samples": samples, "errors": wrong}


def load(page: Any, address: str) -> dict[str, float]:
    page.goto(address)
    page.wait_for_selector("#score .main-svg", timeout=120_000)
    entries = "[...performance.getEntriesByType('paint'), ...performance.getEntriesByType('mark')]"
    found = page.evaluate(f"() => {entries}.map(e => [e.name, e.startTime / 1000])")
    return {name: round(moment, 3) for name, moment in found if name != "first-contentful-paint"}


def watch(page: Any, pid: int, options: argparse.Namespace) -> list[dict[str, float]]:
    """Heap after collecting garbage, and the server's memory, while five runs grow."""
    tools, samples, begun = page.context.new_cdp_session(page), [], time.monotonic()
    tools.send("Performance.enable")
    print(f"{'s':>6}{'JS heap MB':>12}{'server MB':>11}{'nodes':>8}{'points':>8}{'last frame':>14}")
    while not samples or time.monotonic() - begun < 60 * options.minutes:
        page.wait_for_timeout(1000 * SAMPLE_SECONDS)
        tools.send("HeapProfiler.collectGarbage")
        look = "() => { const x = document.getElementById('score').data[0].x; return [x.length, x.at(-1)]; }"
        points, last = page.evaluate(look)
        metrics = {entry["name"]: entry["value"] for entry in tools.send("Performance.getMetrics")["metrics"]}
        heap, nodes = metrics["JSHeapUsedSize"] / 1e6, metrics["Nodes"]
        sample = {"seconds": time.monotonic() - begun, "heap": heap, "server": resident(pid)}
        samples.append(sample | {"nodes": nodes, "points": points, "last": last})
        if len(samples) % 6 == 1 or options.minutes < 3:
            print(f"{sample['seconds']:>6.0f}{heap:>12.1f}{sample['server']:>11.1f}", end="")
            print(f"{nodes:>8.0f}{points:>8}{last:>14,}")
    return samples


def grow(folder: Path, points: int, done: threading.Event) -> None:
    chance, frames = random.Random(0), 4000 * points
    while not done.wait(1.0):
        for i in range(LIVE):
            path = folder / f"pong-{i:03}" / "metrics.jsonl"
            if path.exists():
                with path.open("a") as file:
                    file.write(report(frames, i, chance, whole=True))
        frames += 4000


def timed(address: str) -> tuple[Any, float]:
    begun = time.monotonic()
    with urlopen(address) as answer:
        found = json.load(answer)
    return found, time.monotonic() - begun


def resident(pid: int) -> float:
    """Memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1000


if __name__ == "__main__":
    raise SystemExit(main())
