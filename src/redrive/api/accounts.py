"""`/tokens` and `/users`: who may come in. Secrets go in and never come out, but a new token, once."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import Path
from starlette.responses import Response

from redrive.access import EVERYWHERE, Grant, Permission, Role
from redrive.accounts import ApiToken, User
from redrive.api.letter_wire import Reason
from redrive.api.problems import Unprocessable
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.duration import seconds

accounts = Routes("Access")

TokenId = Annotated[str, Path(max_length=64)]
UserName = Annotated[str, Path(max_length=64)]


class GrantJson(msgspec.Struct):
    """A role, and the queues it holds for: names, or beginnings that end in `*`."""

    role: Role
    queues: tuple[str, ...] = EVERYWHERE

    def grant(self) -> Grant:
        return Grant(self.role, self.queues)


class NewToken(msgspec.Struct, kw_only=True):
    name: str
    grants: list[GrantJson]
    lasts: str | None = None
    """`30d`, `12h`; not given: as long as the settings say."""
    reason: str = ""


class TokenMade(msgspec.Struct):
    """`text` is shown this once."""

    token: ApiToken
    text: str


class TokenList(msgspec.Struct):
    items: list[ApiToken]


class NewUser(msgspec.Struct, kw_only=True):
    name: str
    password: str
    grants: list[GrantJson]
    reason: str = ""


class UserChange(msgspec.Struct, kw_only=True):
    """What is not given stays. A new password ends all sessions of the user."""

    password: str | None = None
    grants: list[GrantJson] | None = None
    disabled: bool | None = None
    reason: str = ""


class UserList(msgspec.Struct):
    items: list[User]


@accounts.at("GET", "/tokens", Permission.ADMINISTER, answers=TokenList, summary="List API tokens, newest first")
async def list_tokens(desk: AtDesk) -> Response:
    return answer(TokenList(await desk.tokens()))


@accounts.at(
    "POST",
    "/tokens",
    Permission.ADMINISTER,
    takes=NewToken,
    answers=TokenMade,
    status=HTTPStatus.CREATED,
    summary="Make an API token; its text is shown this once",
)
async def create_token(desk: AtDesk, asked: Annotated[NewToken, taken(NewToken)]) -> Response:
    grants = [each.grant() for each in asked.grants]
    made = await desk.create_token(asked.name, grants, lasts=_age(asked.lasts), reason=asked.reason)
    return answer(TokenMade(made.token, made.text), HTTPStatus.CREATED)


def _age(text: str | None) -> timedelta | None:
    try:
        return None if text is None else timedelta(seconds=seconds(text))
    except (ValueError, OverflowError):
        raise Unprocessable(f"lasts: {text!r} is no duration", remedy="write it like 30d or 12h") from None


@accounts.at(
    "POST",
    "/tokens/{token_id}/revoke",
    Permission.ADMINISTER,
    takes=Reason,
    answers=ApiToken,
    summary="Revoke a token, at once and for good",
)
async def revoke_token(token_id: TokenId, desk: AtDesk, why: Annotated[Reason, taken(Reason)]) -> Response:
    return answer(await desk.revoke_token(token_id, why.reason))


@accounts.at("GET", "/users", Permission.ADMINISTER, answers=UserList, summary="List local users")
async def list_users(desk: AtDesk) -> Response:
    return answer(UserList(await desk.users()))


@accounts.at(
    "POST",
    "/users",
    Permission.ADMINISTER,
    takes=NewUser,
    answers=User,
    status=HTTPStatus.CREATED,
    summary="Add a local user",
)
async def add_user(desk: AtDesk, asked: Annotated[NewUser, taken(NewUser)]) -> Response:
    grants = [each.grant() for each in asked.grants]
    made = await desk.add_user(asked.name, asked.password, grants, reason=asked.reason)
    return answer(made, HTTPStatus.CREATED)


@accounts.at(
    "PATCH",
    "/users/{name}",
    Permission.ADMINISTER,
    takes=UserChange,
    answers=UserList,
    summary="Give a user another password or other roles, disable or enable them",
)
async def change_user(name: UserName, desk: AtDesk, asked: Annotated[UserChange, taken(UserChange)]) -> Response:
    if asked.grants is not None:
        await desk.set_grants(name, [each.grant() for each in asked.grants], reason=asked.reason)
    if asked.password is not None:
        await desk.set_password(name, asked.password, reason=asked.reason)
    if asked.disabled is not None:
        await (desk.disable_user if asked.disabled else desk.enable_user)(name, asked.reason)
    return answer(UserList([each for each in await desk.users() if each.name == name.strip().lower()]))
