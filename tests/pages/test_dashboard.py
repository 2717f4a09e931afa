"""The dashboard's server over real HTTP, and its command."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lbc.cli import main
from lbc.pages.filming import Film, Studio, own_code
from lbc.pages.guard import known_host
from lbc.pages.overview import Run

pytest.importorskip("uvicorn")
pytest.importorskip("plotly")


class Served:
    """A dashboard in a process of its own."""

    def __init__(self, *roots: Path) -> None:
        command = [sys.executable, "-m", "lbc", "dashboard", *map(str, roots), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[0]
        self.port = int(self.address.rstrip("/").rsplit(":", 1)[1])

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest("GET", path, skip_host="host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body

    def json(self, path: str) -> Any:
        status, _, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


def report(frames: int, score: float | None) -> str:
    dimensions = [{"name": "tau_1", "chosen": [1, 2, 3]}, {"name": "omega_1", "chosen": [4, 0]}]
    policies = [{"loss_value": 0.1, "target_entropy": 0.5}] * 2
    found = {
        "frames": frames,
        "seconds": frames / 50,
        "score_mean": score,
        "score_max": score,
        "behavior_entropy": 1.0,
        "frames_per_second": 50.0,
        "policy_lag": 3.0,
        "responsibility": [0.25, 0.75],
        "time": {"inference": 0.5, "learners": 0.5},
        "dimensions": dimensions,
        "policies": policies,
    }
    return json.dumps(found) + "\n"


def make_run(folder: Path, reports: int = 40, game: str = "catch") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'[environment]\nid = "{game}"\n[run]\nseed = 1\nframes = 10000\n')
    lines = [report(100 * i, i / reports if i else None) for i in range(reports)]
    (folder / "metrics.jsonl").write_text("".join(lines))
    (folder / "summary.json").write_text('{"outcome": "finished"}')
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dashboard")
    (root / "secret.txt").write_text("not for you")
    for name in ("alpha", "beta"):
        make_run(root / "runs" / name)
    make_run(root / "runs" / "broken")
    (root / "runs" / "broken" / "metrics.jsonl").write_bytes(b"\x00\xff broken\n{\n")
    make_run(root / "runs" / "gone")
    return root


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    served = Served(folder / "runs")
    yield served
    assert served.stop() == 130


@pytest.fixture(scope="module")
def runs(served: Served) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in served.json("/api/runs")["runs"]}


def test_the_page_loads_nothing_from_elsewhere(served: Served) -> None:
    status, headers, body = served.get("/")
    assert status == 200 and b"<title>lbc dashboard" in body
    policy = headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy
        and "script-src 'self';" in policy
        and "frame-ancestors 'none'" in policy
    )
    assert headers["x-content-type-options"] == "nosniff"
    texts = [served.get(path)[2] for path in ("/", "/app.js", "/charts.js", "/style.css")]
    assert not any(b"https://" in text for text in texts)
    status, headers, body = served.get("/plotly.js")
    assert status == 200 and len(body) > 1_000_000 and "javascript" in headers["content-type"]


def test_the_list_says_what_a_run_is(runs: dict[str, dict[str, Any]]) -> None:
    assert set(runs) == {"alpha", "beta", "broken", "gone"}
    alpha = runs["alpha"]
    assert (alpha["state"], alpha["game"], alpha["frames"], alpha["score"]) == (
        "finished",
        "catch",
        3900,
        0.975,
    )
    assert runs["broken"]["state"] == "damaged" and "metrics.jsonl" in runs["broken"]["says"]


def test_a_list_that_has_not_changed_is_not_sent_again(served: Served) -> None:
    for _ in range(3):  # sparklines may still be drawn
        version = served.json("/api/runs")["version"]
    assert served.get(f"/api/runs?version={version}")[0] == 204


def test_a_curve_comes_whole_and_then_in_pieces(served: Served, runs: dict[str, Any], folder: Path) -> None:
    identity = runs["alpha"]["id"]
    first = served.json(f"/api/runs/{identity}")
    assert first["start"] == 0 and len(first["columns"]["frames"]) == 40
    with (folder / "runs" / "alpha" / "metrics.jsonl").open("a") as file:
        file.write(report(4000, 1.0) + report(4100, 1.0)[:30])
    asked = f"/api/runs/{identity}?generation={first['generation']}&have={first['kept']}"
    assert served.json(asked)["columns"]["frames"] == [4000]
    for nonsense in ("have=-1", "have=x", "have=99999999999999", "generation=9&have=3"):
        assert served.json(f"/api/runs/{identity}?generation={first['generation']}&{nonsense}")["start"] in (
            0,
            41,
        )


def test_details_are_regions_and_findings(served: Served, runs: dict[str, dict[str, Any]]) -> None:
    details = served.json(f"/api/runs/{runs['beta']['id']}/details")
    assert [dimension["name"] for dimension in details["regions"]] == ["tau_1", "omega_1"]
    lights = {finding["name"]: finding["light"] for finding in details["findings"]}
    assert lights["score"] == "green" and set(lights.values()) <= {"green", "amber", "red", "grey"}


def test_a_damaged_run_and_one_that_vanishes_are_survived(
    served: Served, runs: dict[str, dict[str, Any]], folder: Path
) -> None:
    shutil.rmtree(folder / "runs" / "gone")
    for name in ("broken", "gone"):
        identity = runs[name]["id"]
        for path in ("", "/details", "/film"):
            status, _, body = served.get(f"/api/runs/{identity}{path}")
            assert status in (200, 404) and b"Traceback" not in body
    assert served.json(f"/api/runs/{runs['broken']['id']}")["columns"] == {}


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/static/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/api/runs/..%2f..%2fsecret.txt",
        "/api/runs/%2e%2e/film.gif",
        "/api/runs/0000000000000000",
        "/api/runs/0000000000000000/film.gif",
        "/server.py",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_listed_runs(served: Served, path: str) -> None:
    status, _, body = served.get(path)
    assert status == 404 and b"not for you" not in body and b"root:" not in body


def test_only_reading_is_allowed(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request("POST", "/api/runs", body=b"{}")
    assert connection.getresponse().status == 405


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8265", "localhost.evil.example", ""])
def test_another_name_for_this_machine_is_refused(served: Served, host: str) -> None:
    assert served.get("/api/runs", host=host)[0] in (400, 421)
    assert served.get("/api/runs", host=f"localhost:{served.port}")[0] == 200


def test_another_site_may_not_ask(served: Served, runs: dict[str, dict[str, Any]]) -> None:
    assert served.get("/api/runs", sec_fetch_site="cross-site")[0] == 403
    film = f"/api/runs/{runs['beta']['id']}/film"
    assert served.get(film, sec_fetch_site="same-site", sec_fetch_mode="no-cors")[0] == 403
    assert served.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate")[0] == 200  # a link


def test_hosts() -> None:
    assert all(
        known_host(host, ()) for host in ("127.0.0.1:1", "localhost", "[::1]:8265", "[::1]", "10.0.0.7:80")
    )
    assert not any(known_host(host, ("box",)) for host in ("", "a.b:1", "127.0.0.1.evil.example", "boxx"))
    assert known_host("Box:8265", ("box",))


@pytest.fixture
def studio() -> Iterator[Studio]:
    studio = Studio()
    yield studio
    studio.close()


def test_no_film_is_made_of_code_that_a_run_names(studio: Studio, tmp_path: Path) -> None:
    assert own_code({"a": {"b": ["x", "m:f"]}}) and not own_code({"environment": {"id": "ALE/Pong-v5"}})
    run = Run(make_run(tmp_path / "own", game="my_games:make"), "own")
    assert "No checkpoint yet" in studio.film(run).says
    (run.directory.checkpoints / "100").mkdir(parents=True)
    assert "lbc play" in studio.film(run).says and not studio.film(run).making


def filmed(studio: Studio, run: Run) -> Film:
    while (film := studio.film(run)).making:
        time.sleep(0.2)
    return film


@pytest.mark.slow
def test_a_film_that_fails_says_why_and_others_wait_for_it(studio: Studio, tmp_path: Path) -> None:
    first, second = (Run(make_run(tmp_path / name), name) for name in ("first", "second"))
    for run in (first, second):
        (run.directory.checkpoints / "100").mkdir(parents=True)
    assert studio.film(first).making and not studio.film(second).making
    film = filmed(studio, first)
    assert film.version == "" and "weights" in film.says and not studio.film(first).making


@pytest.mark.slow
def test_a_film_of_the_newest_checkpoint(studio: Studio, tmp_path: Path) -> None:
    assert main(["train", "catch", "--frames", "3000", "--out", str(tmp_path / "catch")]) == 0
    run = Run(tmp_path / "catch", "catch")
    film = filmed(studio, run)
    assert film.version and studio.path(run.id).read_bytes().startswith(b"GIF8")
    assert not (tmp_path / "catch" / "play.gif").exists()


def test_a_taken_port_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert main(["dashboard", str(folder), "--port", port]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lbc: cannot listen on 127.0.0.1, port") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "is no folder"),
        (["--port", "99999", "."], "is no port"),
        (["--host", "no.such.host.invalid", "--port", "0", "."], "cannot listen"),
        ([], "no folder 'runs'"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dashboard", *arguments]) == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_who_listens_beyond_this_machine_is_warned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        main(["dashboard", str(tmp_path), "--host", "0.0.0.0", "--port", str(other.getsockname()[1])])
    assert "there is no password" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_left_behind(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    run = make_run(tmp_path / "run")
    before = sorted(run.iterdir())
    served = Served(run)
    assert list((tmp_path / "temporary").glob("lbc-films-*"))
    assert [found["name"] for found in served.json("/api/runs")["runs"]] == ["run"]
    assert served.stop(number) == code
    assert not list((tmp_path / "temporary").glob("lbc-films-*")) and sorted(run.iterdir()) == before


def test_who_only_reads_runs_waits_for_no_training_library() -> None:
    look = "import sys, lbc.pages.server; print(*{'torch', 'ale_py', 'gymnasium'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", look], text=True).strip() == ""
