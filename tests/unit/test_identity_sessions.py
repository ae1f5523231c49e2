"""Passwords, sessions and the first start (TH10, TH14)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from argon2 import PasswordHasher

from redrive.access import Grant, Identity, Role
from redrive.accounts import KeptUser, User
from redrive.dead_letter import Actor
from redrive.errors import UsageError
from redrive.identity.bootstrap import Bootstrap
from redrive.identity.passwords import Passwords, checked_password
from redrive.identity.sessions import Sessions, digest, new_secret
from redrive.identity.tokens import Tokens
from redrive.stores.sqlite import SqliteStore
from redrive.testing import ManualClock
from support.account_book import account_book

ANN = Actor("ann")
ADMIN = (Grant(Role.ADMIN),)
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
BETTER = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
RIGHT = "correct horse battery staple"


class House:
    """Everything of the room on one store."""

    def __init__(self, store: SqliteStore, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        self.passwords = Passwords(store, hasher=QUICK)
        self.sessions = Sessions(store, clock)
        self.bootstrap = Bootstrap(store, clock)

    async def add(self, name: str = "eve") -> User:
        user = User(name=name, grants=ADMIN, created_at=self.clock.now(), created_by="ann")
        await self.store.add_user(KeptUser(user, await self.passwords.hash(RIGHT)), by=ANN)
        return user

    async def hash_of(self, name: str) -> str:
        kept = await self.store.user(name)
        assert kept is not None
        return kept.password_hash


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with account_book() as (store, clock):
        yield House(store, clock)


# Passwords


async def test_the_right_password_tells_the_user_and_no_other_does(house: House) -> None:
    user = await house.add()
    assert await house.passwords.check("eve", RIGHT) == user
    assert await house.passwords.check(" EVE ", RIGHT) == user
    for wrong in ("", RIGHT[:-1], RIGHT.upper(), RIGHT + "\0", "x" * 10_000, "\ud800" * 20):
        assert await house.passwords.check("eve", wrong) is None


async def test_the_same_password_typed_by_another_keyboard_is_the_same(house: House) -> None:
    user = User(name="zoe", grants=ADMIN, created_at=house.clock.now(), created_by="ann")
    await house.store.add_user(KeptUser(user, await house.passwords.hash("caf\u00e9 caf\u00e9 caf\u00e9")), by=ANN)
    assert await house.passwords.check("zoe", "cafe\u0301 cafe\u0301 cafe\u0301") == user


async def test_names_that_nobody_has_cost_as_much_as_a_wrong_password(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.add()
    await house.add("off")
    await house.store.set_disabled("off", disabled=True, by=ANN)
    verified: list[str] = []
    verify = house.passwords._matches

    def watched(known: str, password: bytes) -> bool:
        verified.append(known.rpartition("$")[0].rpartition("$")[0])  # the parameters
        return verify(known, password)

    monkeypatch.setattr(house.passwords, "_matches", watched)
    for name in ("eve", "nobody", "", "x" * 10_000):
        assert await house.passwords.check(name, "wrong wrong wrong") is None
    assert await house.passwords.check("off", RIGHT) is None

    assert verified == ["$argon2id$v=19$m=8,t=1,p=1"] * 5


async def test_a_hash_of_old_parameters_is_made_anew_when_its_password_is_shown(house: House) -> None:
    await house.add()
    newer = Passwords(house.store, hasher=BETTER)

    assert await newer.check("eve", "wrong wrong wrong") is None
    assert "m=8,t=1" in await house.hash_of("eve")
    secret = await house.sessions.begin((await house.store.users())[0])
    assert await newer.check("eve", RIGHT) is not None
    assert "m=16,t=2" in await house.hash_of("eve")
    assert await newer.check("eve", RIGHT) is not None
    assert secret is not None
    assert await house.sessions.identify(secret) is not None


async def test_a_hash_that_is_none_lets_nobody_in(house: House) -> None:
    user = User(name="odd", grants=ADMIN, created_at=house.clock.now(), created_by="ann")
    await house.store.add_user(KeptUser(user, RIGHT), by=ANN)
    assert await house.passwords.check("odd", RIGHT) is None


async def test_the_usual_parameters_are_those_of_rfc_9106(house: House) -> None:
    assert (await Passwords(house.store).hash(RIGHT)).startswith("$argon2id$v=19$m=65536,t=3,p=4$")


@pytest.mark.parametrize(
    "password", ["", "short", "x" * 11, "x" * 12, "abababababab", "x1" * 129, "eve@example.org"]
)
def test_passwords_that_are_guessed_first_are_refused_unquoted(password: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_password(password, "eve@example.org")
    assert not password or password not in f"{refused.value} {refused.value.remedy}"


# Sessions


async def begun(house: House, name: str = "eve") -> str:
    kept = await house.store.user(name)
    user = await house.add(name) if kept is None else kept.user
    secret = await house.sessions.begin(user)
    assert secret is not None
    return secret


async def test_a_session_tells_its_user(house: House) -> None:
    secret = await begun(house)
    assert await house.sessions.identify(secret, request_id="r") == Identity(
        name="eve", grants=ADMIN, request_id="r"
    )
    assert len(bytes.fromhex(secret)) == 32


async def test_the_store_holds_the_digest_alone(house: House) -> None:
    secret = await begun(house)
    assert await house.store.session(hashlib.sha256(secret.encode()).digest()) is not None
    assert await house.store.session(secret.encode()) is None


@pytest.mark.parametrize(
    "wrong", ["", "0", "0" * 63, "0" * 64, "0" * 65, "G" * 64, "\0" * 64, "\uff10" * 64, "0" * 63 + "\n"]
)
async def test_what_is_no_session_tells_nobody(house: House, wrong: str) -> None:
    await begun(house)
    assert await house.sessions.identify(wrong) is None
    await house.sessions.end(wrong)


async def test_a_session_ends_an_hour_after_it_was_seen(house: House) -> None:
    secret = await begun(house)
    for _ in range(5):
        house.clock.advance(3599)
        assert await house.sessions.identify(secret) is not None
    house.clock.advance(3600)
    assert await house.sessions.identify(secret) is None


async def test_a_session_ends_twelve_hours_after_it_began(house: House) -> None:
    secret = await begun(house)
    for _ in range(12 * 4 - 1):
        house.clock.advance(900)
        assert await house.sessions.identify(secret) is not None
    house.clock.advance(900)
    assert await house.sessions.identify(secret) is None


async def test_who_signs_out_is_out_and_others_are_not(house: House) -> None:
    one, other = await begun(house), await begun(house)
    await house.sessions.end(one)
    assert await house.sessions.identify(one) is None
    assert await house.sessions.identify(other) is not None


async def test_somebody_disabled_between_password_and_session_gets_none(house: House) -> None:
    user = await house.add()
    await house.store.set_disabled("eve", disabled=True, by=ANN)
    assert await house.sessions.begin(user) is None


async def test_somebody_whose_password_changed_between_password_and_session_gets_none(house: House) -> None:
    user = await house.add()
    await house.store.set_password("eve", QUICK.hash("another password"), by=ANN)
    assert await house.sessions.begin(user) is None


async def test_a_session_by_a_provider_needs_grants(house: House) -> None:
    secret = await house.sessions.begin_for(Identity(name="oidc:zoe", grants=ADMIN))
    assert secret is not None
    assert await house.sessions.identify(secret) == Identity(name="oidc:zoe", grants=ADMIN)
    assert await house.sessions.begin_for(Identity(name="oidc:zoe")) is None


async def test_old_sessions_are_forgotten(house: House) -> None:
    await begun(house)
    house.clock.advance(1800)
    secret = await begun(house)
    house.clock.advance(1800)
    assert await house.sessions.forget_old() == 1
    assert await house.sessions.identify(secret) is not None


def test_a_secret_is_of_its_form_or_nothing() -> None:
    assert digest(new_secret()) is not None
    assert digest("rdv_abc") is None


# The first start


async def test_the_first_code_makes_an_admins_session_once(house: House) -> None:
    code = await house.bootstrap.code()
    assert code is not None

    secret = await house.bootstrap.session(code, house.sessions)

    assert secret is not None
    assert await house.sessions.identify(secret) == Identity(name="first start", grants=ADMIN)
    assert await house.bootstrap.session(code, house.sessions) is None
    assert await house.bootstrap.token(code, lasts=timedelta(days=1)) is None


async def test_the_first_code_makes_an_admins_token_once_and_then_there_are_no_more_codes(house: House) -> None:
    code = await house.bootstrap.code()
    assert code is not None

    shown = await house.bootstrap.token(code, lasts=timedelta(days=1))

    assert shown is not None
    found = await Tokens(house.store, house.clock).identify(shown.text)
    assert found is not None
    assert (found.name, found.grants) == ("token:bootstrap of first start", ADMIN)
    assert await house.bootstrap.token(code, lasts=timedelta(days=1)) is None
    assert await house.bootstrap.code() is None


async def test_a_code_holds_for_fifteen_minutes(house: House) -> None:
    early, late = await house.bootstrap.code(), await house.bootstrap.code()
    assert early
    assert late
    house.clock.advance(15 * 60)
    assert await house.bootstrap.session(late, house.sessions) is None
    fresh = await house.bootstrap.code()
    assert fresh
    house.clock.advance(15 * 60 - 1)
    assert await house.bootstrap.session(fresh, house.sessions) is not None


async def test_there_is_no_code_where_there_is_an_account(house: House) -> None:
    code = await house.bootstrap.code()
    await house.add()
    assert code
    assert await house.bootstrap.session(code, house.sessions) is None
    assert await house.bootstrap.code() is None


@pytest.mark.parametrize("wrong", ["", "0" * 64, "x" * 64, "\ud800" * 64])
async def test_a_wrong_code_is_nothing_and_uses_nothing_up(house: House, wrong: Any) -> None:
    code = await house.bootstrap.code()
    assert code
    assert await house.bootstrap.session(wrong, house.sessions) is None
    assert await house.bootstrap.session(code, house.sessions) is not None
