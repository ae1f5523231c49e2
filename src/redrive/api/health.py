"""Outside of `/api`: whether this process lives, whether it can work, and what of it cannot."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Check = Callable[[], Awaitable[object]]

health = APIRouter(tags=["Health"])

_WITHIN = 3.0
PUBLIC: dict[str, Any] = {"security": []}


class Health(msgspec.Struct):
    """`ok`, or what is wrong, for each part."""

    status: str
    parts: dict[str, str]


@health.get("/livez", summary="This process lives", response_class=PlainTextResponse, openapi_extra=PUBLIC)
async def alive() -> Response:
    return PlainTextResponse("ok\n")


@health.get("/readyz", summary="The store answers", response_class=PlainTextResponse, openapi_extra=PUBLIC)
async def ready(request: Request, verbose: str | None = None) -> Response:
    found = await _looked_at(request.app.state.checks)
    sound = found["store"] == "ok"
    status = HTTPStatus.OK if sound else HTTPStatus.SERVICE_UNAVAILABLE
    lines = [f"[{'+' if word == 'ok' else '-'}] {name} {word}" for name, word in found.items()]
    text = "\n".join(lines if verbose is not None else ["ok" if sound else "not ready"])
    return PlainTextResponse(f"{text}\n", status.value)


@health.get("/healthz", summary="Every part of it", response_class=Response, openapi_extra=PUBLIC)
async def healthy(request: Request) -> Response:
    found = await _looked_at(request.app.state.checks)
    sound = all(word == "ok" for word in found.values())
    told = Health("ok" if sound else "degraded", dict(found))
    status = HTTPStatus.OK if sound else HTTPStatus.SERVICE_UNAVAILABLE
    return Response(msgspec.json.encode(told), status.value, media_type="application/json")


async def _looked_at(checks: Mapping[str, Check]) -> dict[str, str]:
    words = await asyncio.gather(*(_word(check) for check in checks.values()))
    return dict(zip(checks, words, strict=True))


async def _word(check: Check) -> str:
    """Nothing of what is wrong is told but that it is: anybody may ask."""
    try:
        async with asyncio.timeout(_WITHIN):
            await check()
    except Exception:  # noqa: BLE001  whatever is wrong with a part, the answer is an answer
        return "unreachable"
    return "ok"
