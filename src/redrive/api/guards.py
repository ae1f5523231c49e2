"""What every request passes before anything else: its id, the limits, and the headers of every answer."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from structlog.contextvars import bound_contextvars

from redrive.api.problems import RETRY_AFTER, problem
from redrive.clock import new_id

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1024 * 1024
MAX_LETTER = 16 * MAX_BODY
"""Of a letter that is handed in, and of a body that is edited."""
MAX_QUERY = 16 * 1024
_ENDLESS = ("/events", "/export", "/export/unmasked")
_WITH_BODIES = ("/api/v1/letters", "/revisions")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SECRET_NAMES = frozenset({"token", "access_token", "api_key", "apikey", "authorization", "secret", "password"})

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Guards:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, *, max_body: int = MAX_BODY, within: float = 10.0) -> None:
        self._app = app
        self._max_body = max_body
        self._within = within

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = _path_once_below(scope)
        scope["redrive.request_id"] = request_id = _request_id(scope)
        with bound_contextvars(request_id=request_id):  # whoever logs meanwhile
            await self._guarded(scope, receive, send, request_id)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                message["headers"] = [*_added(message["headers"], request_id)]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            response = problem(*refusal[:2], remedy=refusal[2], request_id=request_id)
            await response(scope, receive, answer)
            return
        endless = scope["path"].endswith(_ENDLESS)
        try:
            async with asyncio.timeout(None if endless else self._within):
                await self._app(scope, self._counted(receive, self._most(scope)), answer)
        except TimeoutError:
            if begun:
                raise
            late = problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "that took too long",
                remedy="ask for less at once",
                request_id=request_id,
                headers={"retry-after": str(RETRY_AFTER)},
            )
            await late(scope, receive, answer)

    def _refusal(self, scope: Scope) -> tuple[HTTPStatus, str, str] | None:
        query = scope["query_string"]
        if len(query) > MAX_QUERY:
            return HTTPStatus.BAD_REQUEST, "the query is too long", f"keep it under {MAX_QUERY} bytes"
        if _has_secret(query):
            remedy = "send it as the header `Authorization: Bearer ...`, and replace it: URLs are written to logs"
            return HTTPStatus.BAD_REQUEST, "a secret was sent in the URL, and is not accepted there", remedy
        length, most = dict(scope["headers"]).get(b"content-length", b"0"), self._most(scope)
        if not length.isdigit() or int(length) > most:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too large", f"at most {most} bytes"
        return None

    def _most(self, scope: Scope) -> int:
        return MAX_LETTER if scope["path"].endswith(_WITH_BODIES) else self._max_body

    def _counted(self, receive: Receive, most: int) -> Receive:
        """A body without a length is counted as it comes; beyond the limit it is as if the client had gone."""
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            return {"type": "http.disconnect"} if read > most else message

        return counted


def _path_once_below(scope: Scope) -> str:
    """The path from outside. A proxy may leave its own part in what it asks for, which then stands there twice."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    twice = path == root * 2 or path.startswith(f"{root * 2}/")
    return path.removeprefix(root) if root and twice else path


def _request_id(scope: Scope) -> str:
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else new_id()


def _has_secret(query: bytes) -> bool:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return any(name.lower() in _SECRET_NAMES or value.startswith("rdv_") for name, value in pairs)


def _added(headers: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in headers}
    added = [(b"x-request-id", request_id.encode()), *(each for each in HEADERS if each[0] not in there)]
    if b"cache-control" not in there:
        added.append((b"cache-control", b"no-store"))
    return [*headers, *added]
