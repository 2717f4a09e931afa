"""The dashboard's server: a page, and the numbers of the listed runs as JSON.

It only reads, and a request names a run by its number in the list, never by a path.
"""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lbc.errors import UserError, missing_extra
from lbc.pages.catalogue import Catalogue
from lbc.pages.diagnostics import diagnose
from lbc.pages.filming import Studio
from lbc.pages.guard import Guard, is_loopback
from lbc.reporting.colours import DARK_PALETTE, FILLS, PALETTE

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Dashboard:
    """What the page asks for; one request at a time reads files."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._catalogue, self._studio = Catalogue(roots), Studio()
        self._folders = ", ".join(str(root) for root in roots)
        self._lock = threading.Lock()
        self._catalogue.overview()

    def close(self) -> None:
        with self._lock:
            self._studio.close()

    def runs(self, request: Request) -> Any:
        """The list; nothing where the page has this version already."""
        with self._lock:
            runs = self._catalogue.overview()
        version = hashlib.blake2b(json.dumps(runs).encode(), digest_size=8).hexdigest()
        if request.query_params.get("version") == version:
            return None
        colours = {"light": PALETTE, "dark": DARK_PALETTE, "policies": FILLS}
        return {"version": version, "folders": self._folders, "runs": runs, "colours": colours}

    def curve(self, request: Request) -> Any:
        """Columns of one run; only what comes after the first ``have``, where ``generation`` still holds."""
        with self._lock:
            history = self._catalogue.history(request.path_params["run"])
            asked = request.query_params
            goes_on = asked.get("generation") == str(history.generation)
            have = asked.get("have", "")
            start = min(int(have), len(history.kept)) if goes_on and have.isdecimal() and len(have) < 9 else 0
            return {
                "generation": history.generation,
                "start": start,
                "kept": len(history.kept),
                "columns": history.columns(start),
            }

    def details(self, request: Request) -> Any:
        with self._lock:
            history = self._catalogue.history(request.path_params["run"])
            findings = [asdict(finding) for finding in diagnose(history.reports())]
            return {"regions": history.regions(), "findings": findings}

    def film(self, request: Request) -> Any:
        with self._lock:
            return asdict(self._studio.film(self._catalogue[request.path_params["run"]]))

    def picture(self, request: Request) -> bytes:
        with self._lock:
            run = self._catalogue[request.path_params["run"]]
            try:
                return self._studio.path(run.id).read_bytes()
            except OSError:
                raise KeyError("film") from None


def application(dashboard: Dashboard, names: Sequence[str] = ()) -> Starlette:
    """The ASGI application; it answers to IP addresses, to localhost and to ``names``."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise missing_extra("starlette", "dashboard") from None

    def answer(ask: Callable[[Request], Any], media: str = "application/json") -> Callable[..., Response]:
        def endpoint(request: Request) -> Response:
            try:
                found = ask(request)
            except KeyError:
                return PlainTextResponse("There is no such run, or it is gone.", 404)
            if found is None:
                return Response(status_code=204)
            body = found if isinstance(found, bytes) else json.dumps(found, separators=(",", ":"))
            return Response(body, media_type=media)

        return endpoint

    routes = [Route("/", _file("index.html")), Route("/plotly.js", _plotly)]
    routes += [Route(f"/{name}", _file(name)) for name in _static() if name != "index.html"]
    routes += [
        Route("/api/runs", answer(dashboard.runs)),
        Route("/api/runs/{run}", answer(dashboard.curve)),
        Route("/api/runs/{run}/details", answer(dashboard.details)),
        Route("/api/runs/{run}/film", answer(dashboard.film)),
        Route("/api/runs/{run}/film.gif", answer(dashboard.picture, "image/gif")),
    ]
    guard = Middleware(Guard, names=names, script=_plotly_path())
    return Starlette(routes=routes, middleware=[guard])


def serve(roots: Sequence[Path], host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves until it is interrupted; ``ready`` is told the address."""
    try:
        import plotly  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise missing_extra(str(error.name), "dashboard") from None
    dashboard = Dashboard(roots)
    try:
        listener = _listen(host, port)
        app = application(dashboard, (host, socket.gethostname()) if not is_loopback(host) else (host,))
        config = uvicorn.Config(
            app, log_level="error", access_log=False, timeout_graceful_shutdown=1, server_header=False
        )
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{listener.getsockname()[1]}/")
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises it again when it has stopped;
            signal.signal(number, _end)  # a shell's background jobs begin with SIGINT ignored
        uvicorn.Server(config).run(sockets=[listener])  # closes it
    finally:
        dashboard.close()


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port} is no port; choose one from 1024 to 65535, or 0 for any free one.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"cannot listen on {host}, port {port} ({getattr(error, 'strerror', error)}); "
            "choose another with --port, or 0 for any free one."
        ) from None
    return listener


def _static() -> list[str]:
    folder = resources.files("lbc.pages") / "static"
    return [entry.name for entry in folder.iterdir() if Path(entry.name).suffix in _TYPES]


def _file(name: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        body = (resources.files("lbc.pages") / "static" / name).read_bytes()
        return Response(body, media_type=_TYPES[Path(name).suffix])

    return endpoint


def _plotly_path() -> Path:
    import plotly

    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def _plotly(request: Request) -> Response:
    """plotly.js as the installed package has it; the browser keeps it."""
    from starlette.responses import FileResponse

    headers = {"Cache-Control": "private, max-age=86400"}
    return FileResponse(_plotly_path(), media_type="text/javascript", headers=headers)
