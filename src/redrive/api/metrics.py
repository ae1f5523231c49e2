"""Outside of `/api`: what Prometheus is told."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from redrive.api.health import PUBLIC
from redrive.api.problems import problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

metrics = APIRouter(tags=["Health"])

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The metrics of the store and of this process", "content": {"text/plain": {}}},
    401: {"description": "A token is set, and the request does not have it"},
}


class Told:
    """`text` gives them. With a `token`, only to whoever has it."""

    def __init__(self, text: Callable[[], Awaitable[bytes]], *, token: str | None = None) -> None:
        self.text = text
        self._token = token

    def may_know(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if self._token is None:
            return True
        known = given.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else b""
        return hmac.compare_digest(known, self._token.encode())


@metrics.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses=_ANSWERS,
    openapi_extra=PUBLIC,
)
async def tell(request: Request) -> Response:
    told: Told = request.app.state.metrics
    if not told.may_know(request):
        return problem(
            HTTPStatus.UNAUTHORIZED,
            "the metrics are told to whoever has their token",
            remedy="send metrics.token as the header `Authorization: Bearer ...`",
            request_id=request.scope.get("redrive.request_id", ""),
            headers={"www-authenticate": "Bearer"},
        )
    return Response(await told.text(), media_type=_TEXT)
