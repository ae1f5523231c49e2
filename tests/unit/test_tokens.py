"""API tokens: one form, one answer to whatever is wrong, nothing kept that could be shown (TH12)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from redrive.access import Grant, Identity, Role
from redrive.accounts import ApiToken, KeptToken
from redrive.dead_letter import Actor
from redrive.errors import Unreachable
from redrive.identity import tokens
from redrive.identity.tokens import Shown, Tokens, new_token, parse
from redrive.stores.sqlite import SqliteStore
from redrive.testing import ManualClock
from support.account_book import account_book

ANN = Actor("ann")
GRANTS = (Grant(Role.OPERATOR, ("orders",)),)
GOOD = f"rdv_abcdefghjk23_{'0123456789abcdef' * 4}"


@pytest.fixture
async def book() -> AsyncIterator[tuple[SqliteStore, ManualClock]]:
    async with account_book() as opened:
        yield opened


async def made(store: SqliteStore, clock: ManualClock, **values: Any) -> Shown:
    shown, now = new_token(), clock.now()
    given = {"name": "deploy", "grants": GRANTS, "expires_at": now + timedelta(days=90), **values}
    token = ApiToken(id=shown.id, created_at=now, created_by="ann", **given)
    await store.add_token(KeptToken(token, tokens.digest(shown.secret)), by=ANN)
    return shown


def test_a_token_is_what_parse_reads() -> None:
    assert parse(GOOD) == Shown("abcdefghjk23", "0123456789abcdef" * 4)
    for _ in range(50):
        shown = new_token()
        assert parse(shown.text) == shown
        assert shown.text.startswith("rdv_")


def test_secrets_have_256_bits_and_no_two_are_alike() -> None:
    found = {new_token() for _ in range(200)}
    assert len({each.id for each in found}) == len({each.secret for each in found}) == 200
    assert {len(bytes.fromhex(each.secret)) for each in found} == {32}


def test_a_token_does_not_show_its_secret_by_accident() -> None:
    shown = new_token()
    assert shown.secret not in f"{shown} {shown!r}"


BROKEN = {
    "nothing": "",
    "a space": " ",
    "the prefix alone": "rdv_",
    "no secret": "rdv_abcdefghjk23_",
    "no id": f"rdv__{'a' * 64}",
    "no prefix": GOOD.removeprefix("rdv_"),
    "another prefix": GOOD.replace("rdv_", "rdx_"),
    "a prefix in capitals": GOOD.replace("rdv_", "RDV_"),
    "a prefix with a dash": GOOD.replace("rdv_", "rdv-"),
    "the prefix twice": "rdv_" + GOOD,
    "a short id": GOOD.replace("k23_", "k2_"),
    "a long id": GOOD.replace("k23_", "k234_"),
    "an id in capitals": GOOD.replace("abc", "ABC", 1),
    "an id with a letter that is not used": GOOD.replace("abc", "abl", 1),
    "an id with a digit that is not used": GOOD.replace("k23", "k20", 1),
    "a short secret": GOOD[:-1],
    "a long secret": GOOD + "0",
    "a secret in capitals": GOOD[:17] + GOOD[17:].upper(),
    "a secret that is not hexadecimal": GOOD[:-1] + "g",
    "base64": GOOD[:17] + "A" * 43,
    "a space before": " " + GOOD,
    "a space behind": GOOD + " ",
    "a newline behind": GOOD + "\n",
    "a newline in the place of the last digit": GOOD[:-1] + "\n",
    "NUL behind": GOOD + "\0",
    "NUL in the middle": GOOD[:30] + "\0" + GOOD[31:],
    "quotes": f'"{GOOD}"',
    "the word Bearer": f"Bearer {GOOD}",
    "two of them": f"{GOOD},{GOOD}",
    "a parameter": f"{GOOD}?x=1",
    "full-width digits": GOOD[:-1] + "\uff11",
    "Arabic digits": GOOD[:-1] + "\u0663",
    "a letter that looks like c": GOOD.replace("abc", "ab\u0441", 1),
    "a letter that is small if lowered": GOOD.replace("k23", "\u212a23", 1),
    "a combining mark": GOOD[:-1] + "\u0301",
    "a lone surrogate": GOOD[:-1] + "\ud800",
    "a JSON Web Token": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.",
    "SQL": "rdv_' OR '1'='1_" + "0" * 64,
    "a path": "rdv_../../../../_" + "0" * 64,
    "a percent sign": GOOD.replace("_0123", "_%3123"),
    "megabytes": "rdv_" + "a" * 4_000_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_whatever_is_broken_is_no_token(text: str) -> None:
    assert parse(text) is None


async def test_nobody_is_known_by_a_broken_token(book: tuple[SqliteStore, ManualClock]) -> None:
    assert [await Tokens(*book).identify(text) for text in BROKEN.values()] == [None] * len(BROKEN)
    assert len(set(BROKEN.values())) == len(BROKEN) >= 30


async def test_a_good_token_tells_who_it_is_and_what_they_may(book: tuple[SqliteStore, ManualClock]) -> None:
    shown = await made(*book)

    found = await Tokens(*book).identify(shown.text, request_id="r1")

    assert found == Identity(name="token:deploy of ann", grants=GRANTS, token=shown.id, request_id="r1")


async def test_a_token_ends_at_its_time(book: tuple[SqliteStore, ManualClock]) -> None:
    store, clock = book
    shown = await made(store, clock, expires_at=clock.now() + timedelta(seconds=10))
    clock.advance(9.999)
    assert await Tokens(store, clock).identify(shown.text) is not None
    clock.advance(0.001)
    assert await Tokens(store, clock).identify(shown.text) is None


async def test_a_token_ends_when_it_is_revoked(book: tuple[SqliteStore, ManualClock]) -> None:
    shown = await made(*book)
    await book[0].revoke_token(shown.id, by=ANN)
    assert await Tokens(*book).identify(shown.text) is None


async def test_the_secret_of_one_is_nothing_with_the_id_of_another(book: tuple[SqliteStore, ManualClock]) -> None:
    one, other = await made(*book), await made(*book)
    assert await Tokens(*book).identify(Shown(one.id, other.secret).text) is None


class Watched:
    """What identifying costs: which questions, which comparisons."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self._store = store
        compare, digest = hmac.compare_digest, hashlib.sha256

        def compared(one: bytes, other: bytes) -> bool:
            self.seen.append(f"compared {len(one)} {len(other)}")
            return compare(one, other)

        def digested(text: bytes) -> Any:
            self.seen.append(f"digested {len(text)}")
            return digest(text)

        monkeypatch.setattr(hmac, "compare_digest", compared)
        monkeypatch.setattr(hashlib, "sha256", digested)

    async def token(self, token_id: str) -> KeptToken | None:
        self.seen.append("asked")
        return await self._store.token(token_id)


async def test_everything_that_is_wrong_costs_the_same(
    book: tuple[SqliteStore, ManualClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = book
    live, ended, revoked = (
        await made(store, clock),
        await made(store, clock, expires_at=clock.now()),
        await made(*book),
    )
    await store.revoke_token(revoked.id, by=ANN)
    wrong = Shown(live.id, "0" * 64)
    watched = Watched(store, monkeypatch)

    work = []
    for text in ("", new_token().text, ended.text, revoked.text, wrong.text):
        watched.seen.clear()
        assert await Tokens(watched, clock).identify(text) is None  # type: ignore[arg-type]  # one method is used
        work.append(list(watched.seen))

    assert work == [["asked", "digested 64", "compared 32 32"]] * 5


async def test_the_store_holds_no_secret(book: tuple[SqliteStore, ManualClock]) -> None:
    shown = await made(*book)
    kept = await book[0].token(shown.id)
    assert kept is not None
    assert kept.digest == hashlib.sha256(shown.secret.encode()).digest()
    assert shown.secret not in repr(kept)


async def test_use_is_written_at_most_once_a_minute(
    book: tuple[SqliteStore, ManualClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = book
    shown, writes = await made(store, clock), []
    note = store.note_token_use

    async def noted(token_id: str, at: Any) -> None:
        writes.append(at)
        await note(token_id, at)

    monkeypatch.setattr(store, "note_token_use", noted)
    for _ in range(25):  # every 10 seconds
        assert await Tokens(store, clock).identify(shown.text) is not None
        clock.advance(10)

    assert len(writes) == 5
    assert (await store.tokens())[0].last_used_at == writes[-1]


async def test_a_refused_token_was_not_used(book: tuple[SqliteStore, ManualClock]) -> None:
    shown = await made(*book)
    assert await Tokens(*book).identify(Shown(shown.id, "0" * 64).text) is None
    assert (await book[0].tokens())[0].last_used_at is None


async def test_a_store_that_is_away_is_no_refusal(book: tuple[SqliteStore, ManualClock]) -> None:
    shown = await made(*book)
    await book[0].close()
    with pytest.raises(Unreachable):
        await Tokens(*book).identify(shown.text)


async def test_a_use_that_cannot_be_written_does_not_keep_anybody_out(
    book: tuple[SqliteStore, ManualClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise Unreachable("away")

    shown = await made(*book)
    monkeypatch.setattr(book[0], "note_token_use", away)
    assert await Tokens(*book).identify(shown.text) is not None
