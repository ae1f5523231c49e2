"""Whether a browser sends a request because of our own page (TH10)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from redrive.errors import Denied

if TYPE_CHECKING:
    from starlette.requests import Request

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_JSON = "application/json"


class CrossOrigin(Denied):
    def __init__(self) -> None:
        super().__init__("a page of another origin", "to send requests in somebody's name")
        self.remedy = "send it from the console, or with a token"


def check_same_origin(request: Request) -> None:
    """For requests that a cookie vouches for. What changes something comes from our own page, as JSON."""
    if request.method not in _SAFE:
        check_from_own_page(request)


def check_from_own_page(request: Request) -> None:
    site = request.headers.get("sec-fetch-site")
    same = site == "same-origin" if site is not None else _same_origin(request)
    if not same or not _is_json(request):
        raise CrossOrigin


def _same_origin(request: Request) -> bool:
    """Older browsers tell the origin alone. Without either it is no browser, and nobody's page sent it."""
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def _is_json(request: Request) -> bool:
    """A form of a foreign page cannot send it. What has no body needs no type."""
    kind = request.headers.get("content-type", "")
    empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    return (empty and not kind) or kind.partition(";")[0].strip().lower() == _JSON
