"""`/`: the console, as it was built into this package. All its pages are one file."""

from __future__ import annotations

import re
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

from redrive.api.guards import POLICY

if TYPE_CHECKING:
    from starlette.types import Scope

console = APIRouter(include_in_schema=False)

BUILT = Path(__file__).parent.parent / "console"
"""Where `make console` puts it, and where a wheel has it."""
PAGE_POLICY = f"{POLICY}; require-trusted-types-for 'script'; trusted-types 'none'"
_FOR_EVER = "public, max-age=31536000, immutable"
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_NOT_PAGES = ("/api", "/assets", "/docs", "/livez", "/readyz", "/healthz")

_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Redrive</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="{root}/docs.css">
<h1>The console is not built here</h1>
<p>This server runs from its sources. <code>make console</code> builds the console; it needs Node.js 20.19 or
newer. A wheel of Redrive has it built in. Then load this page again: the server need not be started anew.</p>
<p>The API is here all the same: <a href="{root}/docs">its documentation</a>, and
<code>redrive --help</code> on the command line.</p>
"""


@console.get("/")
def page(request: Request) -> Response:
    """The page, told where it is and how one can sign in. Nobody keeps it: it names the newest files."""
    folder: Path = request.app.state.console
    root = escape(request.scope.get("root_path", "").rstrip("/"))
    try:
        built = (folder / "index.html").read_text("utf-8")
    except FileNotFoundError:
        return HTMLResponse(_NOT_BUILT.format(root=root))
    told = built.replace('"./', f'"{root}/')
    told = told.replace('"redrive-base" content=""', f'"redrive-base" content="{root}"')
    if request.app.state.reception.provider is not None:
        told = told.replace(
            'name="redrive-sign-in" content="local"', 'name="redrive-sign-in" content="local oidc"'
        )
    return HTMLResponse(told, headers={"content-security-policy": PAGE_POLICY})


@console.get("/assets/{name}")
def asset(request: Request, name: str) -> Response:
    """A part of the page. Its name has a hash of what is in it, so it never changes."""
    return _file(request.app.state.console / "assets", name, _FOR_EVER)


@console.get("/favicon.svg")
def icon(request: Request) -> Response:
    return _file(request.app.state.console, "favicon.svg", "public, max-age=86400")


def _file(folder: Path, name: str, keep: str) -> Response:
    found, kind = folder / name, _KINDS.get(Path(name).suffix)
    if kind is None or not _NAME.fullmatch(name) or not found.is_file():
        raise HTTPException(HTTPStatus.NOT_FOUND.value)
    return FileResponse(found, media_type=kind, headers={"cache-control": keep})


def is_page(scope: Scope, accept: str) -> bool:
    """Whether a browser asks for an address that only the console's own router knows."""
    here = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
    beside = any(here == each or here.startswith(f"{each}/") for each in _NOT_PAGES)
    return scope["method"] in {"GET", "HEAD"} and "text/html" in accept and not beside
