"""Who is asking: a bearer token, or the session of a browser. Whatever is wrong with either, the answer is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.api.origins import check_same_origin
from redrive.api.problems import TooMany, Unauthenticated
from redrive.identity.tokens import PREFIX, parse

if TYPE_CHECKING:
    from starlette.requests import Request

    from redrive.access import Identity
    from redrive.identity.failures import Failures
    from redrive.identity.oidc import Oidc
    from redrive.identity.sessions import Sessions
    from redrive.identity.tokens import Tokens

COOKIE = "__Host-redrive"
PLAIN_COOKIE = "redrive"
"""Over plain HTTP, which is for this machine alone, browsers take no `__Host-` cookie."""
_BEARER = "bearer "


class AccountKeeper:
    def __init__(
        self, *, tokens: Tokens, sessions: Sessions, failures: Failures, provider: Oidc | None = None
    ) -> None:
        self._tokens = tokens
        self._provider = provider
        self._sessions = sessions
        self._failures = failures

    async def identity_of(self, request: Request) -> Identity:
        """A request with a bearer token is judged by that alone: cookies do not count beside it."""
        address = request.client.host if request.client else ""
        given = request.headers.get("authorization")
        shown = None if given is None else _bearer(given)
        named = parse(shown) if shown is not None else None
        name = "" if named is None else named.id
        if wait := self._failures.wait(address, name):
            raise TooMany("too many failed attempts", retry_after=wait)
        found = await (self._session(request) if given is None else self._bearer(shown or ""))
        if found is None:
            if given is not None or cookie_of(request):
                self._failures.note(address, name)
            raise Unauthenticated
        return found

    async def _bearer(self, shown: str) -> Identity | None:
        """A token of ours, or of the identity provider's."""
        if self._provider is not None and not shown.startswith(PREFIX):
            return await self._provider.identify(shown)
        return await self._tokens.identify(shown)

    async def _session(self, request: Request) -> Identity | None:
        secret = cookie_of(request)
        if not secret:
            return None
        check_same_origin(request)
        return await self._sessions.identify(secret)


def _bearer(authorization: str) -> str:
    begins = authorization[: len(_BEARER)].lower() == _BEARER
    return authorization[len(_BEARER) :].strip() if begins else ""


def cookie_of(request: Request) -> str:
    name = COOKIE if request.url.scheme == "https" else PLAIN_COOKIE
    return request.cookies.get(name, "")
