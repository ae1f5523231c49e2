"""The contract of `AccountStore`: every promise of every method, for any driver.

As with `store_contract`, a driver's test answers `location` and `open`, and inherits the rest.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from redrive.access import Grant, Role
from redrive.accounts import ApiToken, KeptSession, KeptToken, KeptUser, Purpose, Session, Source, User
from redrive.dead_letter import Actor
from redrive.errors import NotFound, Refused, Unreachable
from redrive.testing.letters import NOON
from redrive.testing.store_case import ANN, StoreCase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.accounts import AccountStore
    from redrive.testing.clock import ManualClock

BOB = Actor("bob", "left us")
ADMIN = (Grant(Role.ADMIN),)
SOME = (Grant(Role.OPERATOR, ("orders", "pay*")), Grant(Role.VIEWER, ("Ünïcode 'quoted' \\ queue",)))
_HOUR = timedelta(hours=1)


def a_token(token_id: str = "abc", *, minutes: int = 0) -> KeptToken:  # noqa: S107  an id is no secret
    token = ApiToken(
        id=token_id,
        name="deploy 'x'",
        grants=SOME,
        created_at=NOON + timedelta(minutes=minutes),
        created_by="ann",
        expires_at=NOON + timedelta(days=90),
    )
    return KeptToken(token, f"digest of {token_id}".encode())


def a_user(name: str = "eve", **values: object) -> KeptUser:
    user = User(name=name, grants=SOME, created_at=NOON, created_by="ann")
    return KeptUser(msgspec.structs.replace(user, **values), "$argon2id$one")


def a_session(
    digest: bytes = b"s", *, source: Source = Source.USER, user: str = "eve", epoch: int = 0
) -> KeptSession:
    session = Session(
        user=user,
        source=source,
        grants=() if source is Source.USER else ADMIN,
        created_at=NOON,
        expires_at=NOON + 12 * _HOUR,
        last_seen_at=NOON,
        epoch=epoch,
    )
    return KeptSession(session, digest)


class TokenContract(StoreCase):
    async def test_a_token_comes_back_as_it_was_given(self, store: AccountStore, other: AccountStore) -> None:
        await store.add_token(a_token(), by=ANN)

        assert await other.token("abc") == a_token()
        assert await other.token("ABC") is None

    async def test_the_same_token_again_changes_nothing_and_another_of_its_id_is_refused(
        self, store: AccountStore
    ) -> None:
        await store.add_token(a_token(), by=ANN)
        await store.add_token(a_token(), by=ANN)

        with pytest.raises(Refused):
            await store.add_token(KeptToken(a_token().token, b"another"), by=BOB)
        assert await store.tokens() == [a_token().token]

    async def test_tokens_are_listed_the_newest_first(self, store: AccountStore) -> None:
        for number, name in enumerate(("first", "second", "third")):
            await store.add_token(a_token(name, minutes=number), by=ANN)

        assert [each.id for each in await store.tokens()] == ["third", "second", "first"]

    async def test_who_revokes_first_has_done_it(self, store: AccountStore, clock: ManualClock) -> None:
        await store.add_token(a_token(), by=ANN)
        at = clock.now()

        first = await store.revoke_token("abc", by=BOB)
        clock.advance(60)
        second = await store.revoke_token("abc", by=ANN)

        assert (first.revoked_at, first.revoked_by) == (at, "bob")
        assert second == first
        kept = await store.token("abc")
        assert kept is not None
        assert (kept.token, kept.token.is_live(clock.now())) == (first, False)

    async def test_no_token_is_revoked_that_is_not_there(self, store: AccountStore) -> None:
        with pytest.raises(NotFound):
            await store.revoke_token("abc", by=ANN)

    async def test_a_use_is_noted_at_most_once_a_minute(self, store: AccountStore) -> None:
        await store.add_token(a_token(), by=ANN)
        noted = []
        for seconds in (0, 59, 60, 10, 119, 120):
            await store.note_token_use("abc", NOON + timedelta(seconds=seconds))
            noted.append((await store.tokens())[0].last_used_at)

        assert noted == [NOON + timedelta(seconds=each) for each in (0, 0, 60, 60, 60, 120)]
        await store.note_token_use("unknown", NOON)


class UserContract(StoreCase):
    async def test_a_user_comes_back_as_given(self, store: AccountStore, other: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_user(a_user("bea"), by=ANN)

        assert await other.user("eve") == a_user()
        assert await other.user("nobody") is None
        assert [each.name for each in await other.users()] == ["bea", "eve"]

    async def test_a_name_is_taken_once(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_user(a_user(), by=ANN)

        with pytest.raises(Refused):
            await store.add_user(KeptUser(a_user().user, "$argon2id$two"), by=ANN)
        assert await store.user("eve") == a_user()

    async def test_of_many_who_take_a_name_one_has_it(self, store: AccountStore, other: AccountStore) -> None:
        given = [KeptUser(a_user().user, f"$argon2id${number}") for number in range(8)]

        done = await asyncio.gather(
            *(each.add_user(user, by=ANN) for each, user in zip([store, other] * 4, given, strict=True)),
            return_exceptions=True,
        )

        assert sorted(type(each).__name__ for each in done) == ["NoneType", *["Refused"] * 7]

    async def test_a_new_password_ends_all_sessions_of_its_user_and_no_others(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_user(a_user("bea"), by=ANN)
        for digest, user in ((b"1", "eve"), (b"2", "eve"), (b"3", "bea")):
            await store.add_session(a_session(digest, user=user))

        await store.set_password("eve", "$argon2id$two", by=ANN)

        found = [await store.session(each) is not None for each in (b"1", b"2", b"3")]
        assert found == [False, False, True]
        kept = await store.user("eve")
        assert kept is not None
        assert kept.password_hash == "$argon2id$two"  # noqa: S105  an example

    async def test_the_same_password_again_ends_nothing(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.set_password("eve", "$argon2id$two", by=ANN)
        await store.add_session(a_session(epoch=1))

        await store.set_password("eve", "$argon2id$two", by=ANN)

        assert await store.session(b"s") is not None

    async def test_a_sign_in_that_began_before_the_new_password_is_no_session(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.set_password("eve", "$argon2id$two", by=ANN)

        with pytest.raises(Refused):
            await store.add_session(a_session(epoch=0))

    async def test_a_hash_is_renewed_if_it_is_still_the_one(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_session(a_session())

        await store.renew_hash("eve", "$argon2id$one", "$argon2id$new")
        await store.renew_hash("eve", "$argon2id$one", "$argon2id$late")

        kept = await store.user("eve")
        assert kept is not None
        assert kept == KeptUser(a_user().user, "$argon2id$new")
        assert await store.session(b"s") is not None

    async def test_grants_hold_for_open_sessions(self, store: AccountStore, other: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_session(a_session())

        changed = await store.set_grants("eve", ADMIN, by=ANN)

        session = await other.session(b"s")
        assert session is not None
        assert changed.grants == session.grants == ADMIN

    async def test_somebody_who_is_disabled_has_no_session_and_begins_none(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_session(a_session())

        disabled = await store.set_disabled("eve", disabled=True, by=ANN)
        again = await store.set_disabled("eve", disabled=True, by=ANN)

        assert disabled == again == a_user(disabled=True, epoch=1).user
        assert await store.session(b"s") is None
        with pytest.raises(Refused):
            await store.add_session(a_session(b"t", epoch=1))

    async def test_who_is_enabled_again_has_to_sign_in_again(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_session(a_session())
        await store.set_disabled("eve", disabled=True, by=ANN)

        enabled = await store.set_disabled("eve", disabled=False, by=ANN)

        assert await store.session(b"s") is None
        await store.add_session(a_session(b"t", epoch=enabled.epoch))
        assert await store.session(b"t") is not None

    async def test_nothing_is_changed_about_nobody(self, store: AccountStore) -> None:
        for change in (
            store.set_password("nobody", "hash", by=ANN),
            store.set_grants("nobody", ADMIN, by=ANN),
            store.set_disabled("nobody", disabled=True, by=ANN),
        ):
            with pytest.raises(NotFound):
                await change


class SessionContract(StoreCase):
    async def test_a_users_session_has_the_users_grants(self, store: AccountStore, other: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        await store.add_session(a_session())
        await store.add_session(a_session())

        assert await other.session(b"s") == msgspec.structs.replace(a_session().session, grants=SOME)
        assert await other.session(b"t") is None

    async def test_a_session_by_a_provider_has_its_own_and_needs_no_user(self, store: AccountStore) -> None:
        kept = a_session(source=Source.OIDC, user="oidc:eve")
        await store.add_session(kept)

        assert await store.session(b"s") == kept.session

    async def test_nobody_unknown_begins_a_session(self, store: AccountStore) -> None:
        with pytest.raises(Refused):
            await store.add_session(a_session())

    async def test_being_seen_is_noted_at_most_once_a_minute(self, store: AccountStore) -> None:
        await store.add_session(a_session(source=Source.OIDC))
        noted = []
        for seconds in (59, 60, 30, 119, 120):
            await store.note_session_seen(b"s", NOON + timedelta(seconds=seconds))
            session = await store.session(b"s")
            noted.append(session and session.last_seen_at)

        assert noted == [NOON + timedelta(seconds=each) for each in (0, 60, 60, 60, 120)]

    async def test_a_session_that_is_ended_is_gone(self, store: AccountStore) -> None:
        await store.add_session(a_session(source=Source.OIDC))

        await store.end_session(b"s")
        await store.end_session(b"s")

        assert await store.session(b"s") is None

    async def test_all_sessions_of_somebody_end_at_once(self, store: AccountStore) -> None:
        await store.add_user(a_user(), by=ANN)
        for digest in (b"1", b"2"):
            await store.add_session(a_session(digest))
        await store.add_session(a_session(b"3", source=Source.OIDC, user="oidc:eve"))

        assert await store.end_sessions("eve", by=ANN) == 2
        assert await store.end_sessions("eve", by=ANN) == 0
        assert await store.end_sessions("oidc:eve", by=ANN) == 1
        assert await store.session(b"1") is None

    async def test_old_sessions_are_forgotten(self, store: AccountStore, clock: ManualClock) -> None:
        for digest in (b"idle", b"seen"):
            await store.add_session(a_session(digest, source=Source.OIDC))
        clock.advance(3600)
        await store.note_session_seen(b"seen", clock.now())

        assert await store.forget_sessions(idle_since=NOON) == 1
        assert await store.session(b"seen") is not None
        clock.advance(11 * 3600)
        assert await store.forget_sessions(idle_since=NOON) == 1


class CodeContract(StoreCase):
    async def test_a_code_is_taken_once(self, store: AccountStore, other: AccountStore) -> None:
        await store.add_code(b"c", Purpose.SIGN_IN, expires_at=NOON + _HOUR, note=b"n\0te")

        assert await other.take_code(b"c", Purpose.BOOTSTRAP) is None
        assert await other.take_code(b"c", Purpose.SIGN_IN) == b"n\0te"
        assert await store.take_code(b"c", Purpose.SIGN_IN) is None

    async def test_of_many_who_take_a_code_one_has_it(self, store: AccountStore, other: AccountStore) -> None:
        await store.add_code(b"c", Purpose.SIGN_IN, expires_at=NOON + _HOUR, note=b"it")

        taken = await asyncio.gather(*(each.take_code(b"c", Purpose.SIGN_IN) for each in [store, other] * 5))

        assert sorted(map(str, taken)) == [*["None"] * 9, "b'it'"]

    async def test_a_code_holds_until_its_time(self, store: AccountStore, clock: ManualClock) -> None:
        for digest in (b"c", b"d"):
            await store.add_code(digest, Purpose.SIGN_IN, expires_at=NOON + _HOUR)

        clock.advance(3599)
        assert await store.take_code(b"c", Purpose.SIGN_IN) == b""
        clock.advance(1)
        assert await store.take_code(b"d", Purpose.SIGN_IN) is None

    @pytest.mark.parametrize("given", [a_token(), a_session(source=Source.BOOTSTRAP)])
    async def test_a_bootstrap_code_becomes_one_thing_and_voids_all_others(
        self, store: AccountStore, given: KeptToken | KeptSession
    ) -> None:
        for digest in (b"c", b"d"):
            await store.add_code(digest, Purpose.BOOTSTRAP, expires_at=NOON + _HOUR)

        assert not await store.redeem_bootstrap(b"unknown", given, by=ANN)
        assert await store.redeem_bootstrap(b"c", given, by=ANN)
        assert await store.redeem_bootstrap(b"c", given, by=ANN)  # the same again, after an unknown outcome
        for code in (b"c", b"d"):
            assert not await store.redeem_bootstrap(code, a_session(b"2", source=Source.BOOTSTRAP), by=ANN)
        assert (await store.token("abc") == given) or (await store.session(b"s") is not None)
        assert await store.session(b"2") is None

    async def test_of_many_who_redeem_at_once_one_does(self, store: AccountStore, other: AccountStore) -> None:
        codes = [f"{number}".encode() for number in range(6)]
        for code in codes:
            await store.add_code(code, Purpose.BOOTSTRAP, expires_at=NOON + _HOUR)

        done = await asyncio.gather(
            *(
                each.redeem_bootstrap(code, a_session(b"of " + code, source=Source.BOOTSTRAP), by=ANN)
                for each, code in zip([store, other] * 3, codes, strict=True)
            )
        )

        assert sorted(done) == [*[False] * 5, True]

    async def test_a_bootstrap_code_is_void_when_it_is_late(self, store: AccountStore, clock: ManualClock) -> None:
        await store.add_code(b"c", Purpose.BOOTSTRAP, expires_at=NOON + _HOUR)
        clock.advance(3600)

        assert not await store.redeem_bootstrap(b"c", a_token(), by=ANN)
        assert not await store.has_accounts()

    @pytest.mark.parametrize("kind", ["token", "user"])
    async def test_a_bootstrap_code_is_void_once_there_is_an_account(self, store: AccountStore, kind: str) -> None:
        await store.add_code(b"c", Purpose.BOOTSTRAP, expires_at=NOON + _HOUR)
        assert not await store.has_accounts()
        if kind == "token":
            await store.add_token(a_token("one"), by=ANN)
            await store.revoke_token("one", by=ANN)
        else:
            await store.add_user(a_user(), by=ANN)

        assert await store.has_accounts()
        assert not await store.redeem_bootstrap(b"c", a_token("two"), by=ANN)

    async def test_a_closed_store_says_that_it_is_away(self, store: AccountStore) -> None:
        await store.close()  # type: ignore[attr-defined]  # every store of ours is more than this seam
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: store.token("abc"),
            lambda: store.session(b"s"),
            lambda: store.add_token(a_token(), by=ANN),
            lambda: store.take_code(b"c", Purpose.SIGN_IN),
        ]
        for each in asked:
            with pytest.raises(Unreachable):
                await each()


class AccountContract(TokenContract, UserContract, SessionContract, CodeContract):
    pass
