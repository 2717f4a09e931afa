"""Who may ask the dashboard, and what its page may do.

Pages of other sites can neither ask (Sec-Fetch-Site) nor pretend to be this one (Host), and the page itself
may load nothing from elsewhere (Content-Security-Policy).
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_INLINE = re.compile(r"""\.textContent=(['"`])((?:(?!\1)[^\\]|\\.)*)\1""")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' {styles}; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Around an ASGI application: refuses strangers, and puts its headers on every answer."""

    def __init__(self, app: Any, names: Sequence[str], script: Path) -> None:
        every = _HEADERS | {"Content-Security-Policy": _POLICY.format(styles=" ".join(styles_in(script)))}
        self._headers = [(key.lower().encode(), value.encode()) for key, value in every.items()]
        self._app, self._names = app, names

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {key for key, _ in message["headers"]}
                message["headers"] += [header for header in self._headers if header[0] not in given]
            await send(message)

        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse

        headers, app = Headers(scope=scope), self._app
        if not known_host(headers.get("host", ""), self._names):
            app = PlainTextResponse("This name is not the dashboard's; open it by its IP address.", 421)
        elif _is_foreign(headers, scope["path"]):
            app = PlainTextResponse("Another site may not ask for this.", 403)
        await app(scope, receive, with_headers)


def _is_foreign(headers: Mapping[str, str], path: str) -> bool:
    """Whether a browser says that another site asks; a link to the page is welcome all the same."""
    linked = path == "/" and headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not linked


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def known_host(header: str, names: Sequence[str]) -> bool:
    """An address, localhost or a given name: no other name can be made to point here (DNS rebinding)."""
    name = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    name = name.strip("[]").lower()
    if name in ("localhost", *(given.lower() for given in names)):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def styles_in(script: Path) -> list[str]:
    """Of the style sheets that a script writes into a page, as a policy names them: these and no others."""
    found = _INLINE.finditer(script.read_text(encoding="utf-8"))
    texts = {re.sub(r"\\(.)", r"\1", literal[2]) for literal in found}
    hashes = (hashlib.sha256(text.encode()).digest() for text in texts | {""})
    return sorted(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
