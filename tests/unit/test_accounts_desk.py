"""Nobody grants what they do not have, and what is beyond them is not there (TH9, TH12)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest
from argon2 import PasswordHasher

from redrive.access import Grant, Identity, Permission, Role, local
from redrive.account_actions import AccountActions
from redrive.denials import Denials
from redrive.errors import Denied, NotFound, Refused, UsageError
from redrive.identity.passwords import Passwords
from redrive.identity.sessions import Sessions
from redrive.identity.tokens import Tokens
from redrive.stores.sqlite import SqliteStore
from redrive.testing import ManualClock
from support.account_book import account_book

RIGHT = "correct horse battery staple"
OPERATOR = [Grant(Role.OPERATOR)]
ORDERS_ADMIN = Identity(name="bob", grants=(Grant(Role.ADMIN, ("orders", "pay*")),))


class AccountDesk(AccountActions):
    def __init__(self, store: SqliteStore, clock: ManualClock, who: Identity) -> None:
        self._store = store
        self._runs = cast("Any", store)
        self._clock = clock
        self._who = who
        self._denials = Denials(clock)
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        self.__dict__["_passwords"] = Passwords(store, hasher=quick)

    def of(self, who: Identity) -> AccountDesk:
        return AccountDesk(cast("SqliteStore", self._store), cast("ManualClock", self._clock), who)


@pytest.fixture
async def desk() -> AsyncIterator[AccountDesk]:
    async with account_book() as (store, clock):
        yield AccountDesk(store, clock, local("ann"))


def identify(desk: AccountDesk, text: str) -> Any:
    return Tokens(desk._accounts, desk._clock).identify(text)


async def test_a_token_is_made_shown_once_and_works(desk: AccountDesk) -> None:
    made = await desk.create_token(" deploy ", OPERATOR)

    found = await identify(desk, made.text)
    assert (found.name, found.grants, found.token) == ("token:deploy of ann", tuple(OPERATOR), made.token.id)
    assert (await desk.tokens())[0].created_by == "ann"
    assert made.text not in f"{made!r} {await desk.tokens()}"
    assert made.token.expires_at - made.token.created_at == timedelta(days=90)


async def test_a_token_holds_for_as_long_as_it_may(desk: AccountDesk) -> None:
    for lasts in (timedelta(minutes=1), timedelta(days=365)):
        made = await desk.create_token("x", OPERATOR, lasts=lasts)
        assert made.token.expires_at - made.token.created_at == lasts
    for wrong in (timedelta(seconds=59), timedelta(days=366), timedelta(days=-1)):
        with pytest.raises(UsageError):
            await desk.create_token("x", OPERATOR, lasts=wrong)


async def test_a_revoked_token_is_refused_and_stays_in_the_list(desk: AccountDesk) -> None:
    made = await desk.create_token("deploy", OPERATOR)

    revoked = await desk.revoke_token(f" {made.token.id} ", "leaked")

    assert revoked.revoked_by == "ann"
    assert await identify(desk, made.text) is None
    assert await desk.tokens() == [revoked]


@pytest.mark.parametrize("role", [each for each in Role if each is not Role.ADMIN])
async def test_only_administrators_see_and_change_accounts(desk: AccountDesk, role: Role) -> None:
    made = await desk.create_token("deploy", OPERATOR)
    await desk.add_user("eve", RIGHT, OPERATOR)
    other = desk.of(Identity(name="eve", grants=(Grant(role),)))

    for asked in (
        other.tokens(),
        other.users(),
        other.create_token("mine", [Grant(role)]),
        other.revoke_token(made.token.id),
        other.add_user("zoe", RIGHT, [Grant(role)]),
        other.set_password("eve", RIGHT + RIGHT),
        other.set_grants("eve", [Grant(role)]),
        other.disable_user("eve"),
        other.enable_user("eve"),
        other.sign_out("eve"),
    ):
        with pytest.raises(Denied) as denied:
            await asked
        assert denied.value.permission == Permission.ADMINISTER
    assert await desk.tokens() == [made.token]


@pytest.mark.parametrize(
    "grant",
    [
        Grant(Role.VIEWER),
        Grant(Role.ADMIN),
        Grant(Role.INGEST),
        Grant(Role.VIEWER, ("other",)),
        Grant(Role.VIEWER, ("order*",)),
        Grant(Role.VIEWER, ("p*",)),
        Grant(Role.VIEWER, ("orders", "other")),
        Grant(Role.ADMIN, ("orders", "*")),
        Grant(Role.INGEST, ("other",)),
        Grant(Role.AUDITOR, ("ordersx",)),
    ],
)
async def test_nobody_grants_what_they_do_not_have(desk: AccountDesk, grant: Grant) -> None:
    await desk.add_user("eve", RIGHT, [Grant(Role.VIEWER, ("orders",))])
    bob = desk.of(ORDERS_ADMIN)
    for asked in (
        bob.create_token("more", [Grant(Role.VIEWER, ("orders",)), grant]),
        bob.add_user("zoe", RIGHT, [grant]),
        bob.set_grants("eve", [grant]),
    ):
        with pytest.raises(Denied):
            await asked
    assert await desk.tokens() == []
    assert [each.name for each in await desk.users()] == ["eve"]


@pytest.mark.parametrize(
    "grant",
    [Grant(Role.ADMIN, ("orders",)), Grant(Role.VIEWER, ("pay*", "payments")), Grant(Role.INGEST, ("orders",))],
)
async def test_what_somebody_has_they_may_grant(desk: AccountDesk, grant: Grant) -> None:
    made = await desk.of(ORDERS_ADMIN).create_token("mine", [grant])
    assert made.token.grants == (grant,)


async def test_an_administrator_of_everything_makes_tokens_for_workers(desk: AccountDesk) -> None:
    made = await desk.create_token("worker", [Grant(Role.INGEST)])
    found = await identify(desk, made.text)
    assert [each for each in Permission if found.may(each)] == [Permission.INGEST]


async def test_a_right_other_than_administration_is_not_made_from_it(desk: AccountDesk) -> None:
    only = desk.of(Identity(name="x", grants=(Grant(Role.ADMIN, ("orders",)), Grant(Role.VIEWER))))
    await only.create_token("x", [Grant(Role.VIEWER)])
    with pytest.raises(Denied):
        await only.create_token("x", [Grant(Role.OPERATOR)])


async def test_accounts_that_may_do_more_are_not_there(desk: AccountDesk) -> None:
    made = await desk.create_token("more", OPERATOR)
    await desk.add_user("root", RIGHT, [Grant(Role.ADMIN)])
    bob = desk.of(ORDERS_ADMIN)

    assert (await bob.tokens(), await bob.users()) == ([], [])
    for asked in (
        bob.revoke_token(made.token.id),
        bob.set_password("root", RIGHT + RIGHT),
        bob.set_grants("root", [Grant(Role.VIEWER, ("orders",))]),
        bob.disable_user("root"),
        bob.enable_user("root"),
    ):
        with pytest.raises(NotFound):
            await asked


async def test_users_come_in_by_their_password_until_they_are_disabled(desk: AccountDesk) -> None:
    await desk.add_user(" Eve ", RIGHT, OPERATOR)
    user = await desk._passwords.check("eve", RIGHT)
    assert user is not None
    sessions = Sessions(desk._accounts, desk._clock)
    secret = await sessions.begin(user)
    assert secret is not None

    await desk.disable_user("EVE", "left")

    assert await sessions.identify(secret) is None
    assert await desk._passwords.check("eve", RIGHT) is None
    assert [each.disabled for each in await desk.users()] == [True]
    await desk.enable_user("eve")
    assert await desk._passwords.check("eve", RIGHT) is not None
    assert await sessions.identify(secret) is None


async def test_a_new_password_is_in_force_at_once(desk: AccountDesk) -> None:
    await desk.add_user("eve", RIGHT, OPERATOR)
    await desk.set_password("eve", "another long password")
    assert await desk._passwords.check("eve", RIGHT) is None
    assert await desk._passwords.check("eve", "another long password") is not None


async def test_somebody_sets_their_own_password_by_the_one_they_have(desk: AccountDesk) -> None:
    await desk.add_user("eve", RIGHT, OPERATOR)
    eve = desk.of(Identity(name="eve", grants=tuple(OPERATOR)))
    by_token = Identity(name="eve", token="abc")  # noqa: S106  an id
    with pytest.raises(UsageError):
        await eve.set_own_password("wrong wrong wrong", "another long password")
    with pytest.raises(UsageError):
        await desk.of(by_token).set_own_password(RIGHT, "another long password")
    await eve.set_own_password(RIGHT, "another long password")
    assert await desk._passwords.check("eve", "another long password") is not None


async def test_what_cannot_be_is_refused(desk: AccountDesk) -> None:
    await desk.add_user("eve", RIGHT, OPERATOR)
    with pytest.raises(Refused):
        await desk.add_user("eve", RIGHT, OPERATOR)
    for wrong in (
        desk.add_user("oidc:eve", RIGHT, OPERATOR),
        desk.add_user("zoe", "short", OPERATOR),
        desk.add_user("zoe", RIGHT, []),
        desk.create_token("", OPERATOR),
        desk.create_token("x", []),
        desk.set_password("eve", "eve"),
    ):
        with pytest.raises(UsageError):
            await wrong
    for nobody in (desk.set_password("zoe", RIGHT), desk.disable_user("zoe"), desk.revoke_token("x")):
        with pytest.raises(NotFound):
            await nobody


async def test_all_sessions_of_somebody_can_be_ended(desk: AccountDesk) -> None:
    sessions = Sessions(desk._accounts, desk._clock)
    secret = await sessions.begin_for(Identity(name="oidc:4f2a", grants=tuple(OPERATOR)))
    assert secret is not None
    assert await desk.sign_out("oidc:4f2a") == 1
    assert await sessions.identify(secret) is None
