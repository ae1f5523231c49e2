"""`/session`: sessions of browsers, by a local user, the first start's code, or an identity provider."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from redrive.access import Grant
from redrive.api.keeper import COOKIE, PLAIN_COOKIE, cookie_of
from redrive.api.origins import check_from_own_page
from redrive.api.problems import TooMany, Unauthenticated
from redrive.api.routes import answer, documented, taken
from redrive.errors import NotFound

if TYPE_CHECKING:
    from redrive.identity.bootstrap import Bootstrap
    from redrive.identity.failures import Failures
    from redrive.identity.passwords import Passwords
    from redrive.identity.sessions import Sessions
    from redrive.identity.sign_ins import SignIns

sign_in = APIRouter(tags=["Session"])

_STATE = "redrive-sign-in"


@dataclass(frozen=True, kw_only=True)
class Reception:
    """What it takes to let somebody in."""

    sessions: Sessions
    passwords: Passwords
    bootstrap: Bootstrap
    failures: Failures
    starts: Failures
    """Sign-ins by the provider that were begun, whatever became of them."""
    provider: SignIns | None = None


class Credentials(msgspec.Struct, kw_only=True):
    """A user's name and password, or the one-time code of the first start."""

    user: str = ""
    password: str = ""
    code: str = ""


class Myself(msgspec.Struct, kw_only=True):
    name: str
    grants: tuple[Grant, ...]
    permissions: dict[str, tuple[str, ...]]
    """What may be done, and for which queues."""


@sign_in.post("/session", **documented("Sign in; the session is in a cookie", takes=Credentials, status=204))
async def begin(request: Request, given: Annotated[Credentials, taken(Credentials)]) -> Response:
    check_from_own_page(request)
    reception: Reception = request.app.state.reception
    address, name = request.client.host if request.client else "", given.user.strip().lower()
    if wait := reception.failures.wait(address, name):
        raise TooMany("too many failed attempts", retry_after=wait)
    secret = await _secret(reception, given)
    if secret is None:
        reception.failures.note(address, name)
        raise Unauthenticated
    return _with_cookie(request, Response(status_code=HTTPStatus.NO_CONTENT.value), secret)


async def _secret(reception: Reception, given: Credentials) -> str | None:
    if given.code:
        return await reception.bootstrap.session(given.code, reception.sessions)
    user = await reception.passwords.check(given.user, given.password)
    return None if user is None else await reception.sessions.begin(user)


@sign_in.get("/session", **documented("Who I am, and what I may do", answers=Myself))
async def myself(request: Request) -> Response:
    who = (await request.app.state.door.desk(request)).who
    return answer(Myself(name=who.name, grants=who.grants, permissions=who.permissions()))


@sign_in.delete("/session", **documented("Sign out", status=204))
async def end(request: Request) -> Response:
    check_from_own_page(request)
    reception: Reception = request.app.state.reception
    await reception.sessions.end(cookie_of(request))
    gone = Response(status_code=HTTPStatus.NO_CONTENT.value)
    name, secure = _cookie_name(request), _is_secure(request)
    gone.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")
    return gone


@sign_in.get("/session/oidc", **documented("Sign in by the identity provider", status=303))
async def to_provider(
    request: Request, return_to: Annotated[str, Query(max_length=2048, description="A path of ours.")] = "/"
) -> Response:
    provider, reception = _provider(request), request.app.state.reception
    address = request.client.host if request.client else ""
    if wait := reception.starts.wait(address):  # each leaves a row in the store for a while
        raise TooMany("too many sign-ins were begun", retry_after=wait)
    reception.starts.note(address)
    begun = await provider.begin(str(request.url_for("from_provider")), return_to)
    there = RedirectResponse(begun.url, HTTPStatus.SEE_OTHER.value)
    # Lax, for the browser comes back from the provider's page; it says nothing but that it is this browser.
    there.set_cookie(
        _STATE, begun.state, max_age=600, path="/", secure=_is_secure(request), httponly=True, samesite="lax"
    )
    return there


@sign_in.get("/session/oidc/callback", **documented("Where the identity provider sends the browser", status=303))
async def from_provider(
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=2048)] = "",
) -> Response:
    reception: Reception = request.app.state.reception
    cookie = request.cookies.get(_STATE, "")
    found = await _provider(request).finish(state=state, cookie=cookie, code=code)
    secret = None if found is None else await reception.sessions.begin_for(found.identity)
    if found is None or secret is None:
        raise Unauthenticated
    back = RedirectResponse(f"{request.scope.get('root_path', '')}{found.return_to}", HTTPStatus.SEE_OTHER.value)
    back.delete_cookie(_STATE, path="/")
    return _with_cookie(request, back, secret)


def _provider(request: Request) -> SignIns:
    reception: Reception = request.app.state.reception
    if reception.provider is None:
        raise NotFound("no identity provider is set up", remedy="[oidc] in the settings names one")
    return reception.provider


def _with_cookie(request: Request, response: Any, secret: str) -> Response:
    response.set_cookie(
        _cookie_name(request), secret, path="/", secure=_is_secure(request), httponly=True, samesite="strict"
    )
    found: Response = response
    return found


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


def _cookie_name(request: Request) -> str:
    return COOKIE if _is_secure(request) else PLAIN_COOKIE
