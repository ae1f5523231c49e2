"""What a server says went wrong, as the error that it was there."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from redrive import errors
from redrive.errors import FilterError, RedriveError, Refused, Unreachable, UsageError
from redrive.remote.address import HOW_TO_GET_A_TOKEN

if TYPE_CHECKING:
    import httpx2

_PROBLEM = "application/problem+json"
_AWAY = frozenset(
    {
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
_KINDS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, RedriveError)
}


class _Problem(msgspec.Struct):
    detail: str
    remedy: str = ""
    error: str = ""
    column: int | None = None


def error_of(response: httpx2.Response, url: str) -> RedriveError:
    """`url` is the server's."""
    problem = _problem(response)
    if problem is None:
        return not_redrive(response, url)
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return Refused(f"{url} does not let this token in", remedy=HOW_TO_GET_A_TOKEN)
    kind = _KINDS.get(problem.error)
    if kind is None or response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return _unnamed(response, problem, url)
    return _made(kind, problem)


def _problem(response: httpx2.Response) -> _Problem | None:
    if not response.headers.get("content-type", "").startswith(_PROBLEM):
        return None
    try:
        return msgspec.json.decode(response.content, type=_Problem)
    except msgspec.MsgspecError:
        return None


def _made(kind: type[RedriveError], problem: _Problem) -> RedriveError:
    """With the text as it was written there: each class would write its own."""
    made = kind.__new__(kind)
    RedriveError.__init__(made, problem.detail, remedy=problem.remedy)
    if isinstance(made, FilterError):
        made.column = problem.column or 1
    return made


def _unnamed(response: httpx2.Response, problem: _Problem, url: str) -> RedriveError:
    """What the server's own frame said, before anything of Redrive was asked."""
    wait = response.headers.get("retry-after", "")
    again = f"try again in {wait} s" if wait.isdigit() else problem.remedy
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return RedriveError(f"{url}: {problem.detail}", remedy=again)
    if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        return Unreachable(f"{url}: {problem.detail}", remedy=again)
    if response.status_code in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
        return UsageError(
            f"{url} does not know {response.request.method} {response.request.url.path}",
            remedy="is the URL whole, and is the server as new as this command?",
        )
    if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return UsageError(problem.detail, remedy=problem.remedy)
    return RedriveError(f"{url}: {problem.detail}", remedy=problem.remedy)


def not_redrive(response: httpx2.Response, url: str) -> RedriveError:
    """Somebody else answers there: a proxy that has nobody behind it, a login page, another program."""
    status, kind = response.status_code, response.headers.get("content-type", "").partition(";")[0].strip()
    if response.is_redirect:
        return UsageError(
            f"{url} sends on to another address, and a token is not sent after it",
            remedy="give the URL where Redrive itself answers",
        )
    what = "a page of HTML" if kind == "text/html" else f"something else ({kind or 'of no type'})"
    text = f"{url} answers {status} with {what}, not as a Redrive server does"
    remedy = "a proxy or another program answers there: look at its log, or give another --server"
    return Unreachable(text, remedy=remedy) if status in _AWAY else RedriveError(text, remedy=remedy)
