"""What goes wrong, as problem+json (RFC 9457): what happened, what to do about it, and nothing of our inside."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
import structlog
from starlette.responses import Response

from redrive.any_text_json import encoded
from redrive.errors import (
    ConfigurationError,
    Denied,
    FilterError,
    NotFound,
    PublishRefused,
    RedriveError,
    Refused,
    Unreachable,
    UsageError,
)
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

log = structlog.get_logger("redrive.api")

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
"""Seconds after which a store or broker that is away may be back."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, and what to do about it."""

    type: str
    """One word for programs, such as `urn:redrive:problem:not-found`."""
    title: str
    status: int
    detail: str
    remedy: str = ""
    request_id: str = ""
    """As in the header X-Request-ID and in the server's log."""
    column: int | None = None
    """Of a filter that cannot be read: where, counted from 1."""
    error: str = ""
    """The error's name, such as `TransitionRefused`: the same on the command line and in the library."""


class Unauthenticated(RedriveError):
    """Nobody known asks. The same text whatever is wrong: it must not tell which half was right."""

    def __init__(self) -> None:
        super().__init__(
            "a valid token or session is needed",
            remedy="send `Authorization: Bearer rdv_...`; `redrive tokens create` makes a token",
        )


class TooMany(RedriveError):
    def __init__(self, text: str, *, retry_after: float, remedy: str = "wait, then try again") -> None:
        super().__init__(text, remedy=remedy)
        self.retry_after = retry_after


class Unprocessable(UsageError):
    """The request is well-formed, and its body or a parameter is not what the route takes."""


class TooLarge(UsageError):
    pass


class Outdated(Refused):
    """If-Match names another revision than the current one."""


class PreconditionMissing(Refused):
    """An edit has to say what it is based on."""


_STATUS: tuple[tuple[type[RedriveError], HTTPStatus], ...] = (
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (TooMany, HTTPStatus.TOO_MANY_REQUESTS),
    (TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (Unprocessable, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Outdated, HTTPStatus.PRECONDITION_FAILED),
    (PreconditionMissing, HTTPStatus.PRECONDITION_REQUIRED),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (Denied, HTTPStatus.FORBIDDEN),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Refused, HTTPStatus.CONFLICT),
    (PublishRefused, HTTPStatus.CONFLICT),
    (Unreachable, HTTPStatus.SERVICE_UNAVAILABLE),
    (ConfigurationError, HTTPStatus.SERVICE_UNAVAILABLE),
)


def status_of(error: RedriveError) -> HTTPStatus:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def answer_to(request: Request, error: Exception) -> Response:
    """Whatever was raised, as an answer. What nobody expected is told to the log, not to whoever asked."""
    request_id = request.scope.get("redrive.request_id", "")
    if not isinstance(error, RedriveError):
        log.error("a request failed", request_id=request_id, path=request.url.path, **error_facts(error))
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        detail, remedy = "something went wrong inside", f"the server's log tells more about request {request_id}"
        return problem(status, detail, remedy=remedy, request_id=request_id)
    status = status_of(error)
    column = error.column if isinstance(error, FilterError) else None
    headers = _headers(error)
    text, remedy = str(error), error.remedy
    if isinstance(error, Unreachable | ConfigurationError):  # names hosts and files of ours
        log.warning("a request could not be answered", request_id=request_id, **error_facts(error))
        text, remedy = "the server cannot reach its store or its broker", "try again later; its log tells more"
    return problem(
        status,
        text,
        remedy=remedy,
        request_id=request_id,
        column=column,
        error=_name_of(error),
        headers=headers,
    )


def _name_of(error: RedriveError) -> str:
    """Of the class that clients know, not of one that the API alone has."""
    known = (kind for kind in type(error).__mro__ if kind.__module__ == RedriveError.__module__)
    return next(known).__name__


def _headers(error: RedriveError) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"www-authenticate": 'Bearer realm="redrive"'}
    if isinstance(error, TooMany):
        return {"retry-after": str(max(1, round(error.retry_after)))}
    if isinstance(error, Unreachable | ConfigurationError):
        return {"retry-after": str(RETRY_AFTER)}
    return {}


def problem(
    status: HTTPStatus,
    detail: str,
    *,
    remedy: str = "",
    request_id: str = "",
    column: int | None = None,
    error: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    told = Problem(
        type=f"urn:redrive:problem:{status.phrase.lower().replace(' ', '-')}",
        title=status.phrase,
        status=status.value,
        detail=detail,
        remedy=remedy,
        request_id=request_id,
        column=column,
        error=error,
    )
    return Response(encoded(told), status.value, dict(headers or {}), MEDIA_TYPE)
