"""T1 and T2: recording and redelivery; every byte and every failure kept."""

from __future__ import annotations

import asyncio
import hashlib
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from redrive.dead_letter import Recorded, Status
from redrive.failure import Failure, FailureKind, Host, Raised
from redrive.letter_query import LetterQuery
from redrive.testing.letters import NOON, a_failure, a_message, an_entry
from redrive.testing.store_case import (
    StoreCase,
    claimed,
    letter,
    place,
    returned,
    sent,
    state,
)

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore

_LATER = NOON + timedelta(minutes=5)

HOSTILE_TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff lone \ud83d",
    "\u241b0000",
    "\u241b\u241bd800",
    "'; DROP TABLE letters; --",
    '%_\\"`',
    "\u202etxt.exe",
    "\U0010ffff",
    "e\u0301 \u00e9",
    "x" * 10_000,
    "sha256:" + "0" * 64,
]

BODIES = [
    None,
    b"",
    b"\x00",
    b"\xff\xfe\x80 not UTF-8",
    b'{"amount": 123456789012345678901234567890, "a": 1, "a": 2}',
    b"[" * 5_000,
    random.Random(7).randbytes(1_000_000),  # noqa: S311  bytes of every value, the same each time
]

PROPERTIES: dict[str, bytes | None] = {
    "none": None,
    "empty": b"",
    "no text": b"\x00\xff\x80",
    "text": b"{}",
    "many": b"x" * 10_000,
}

HEADERS: list[tuple[tuple[str, Any], ...]] = [
    (),
    (("x", "1"), ("a", "2"), ("x", "3")),
    (("none", None), ("empty", ""), ("no bytes", b""), ("", "no name")),
    (("bytes", b"\x00\xff"), ("float", 1.5), ("whole float", 1.0), ("true", True), ("one", 1)),
    (("large", 2**80), ("small", -(2**80)), ("u64", 2**64 - 1)),
    (("\ud800", "\udc00"), ("nul\x00", "\x00")),
    (("nested", {"list": [1, "two", None, {"deep": b"\x01"}]}), ("list", [])),
    (("date", datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC)),),
]


def shown(text: str) -> str:
    """A test's name, whatever the text."""
    return ascii(text[:20])


class RecordContract(StoreCase):
    async def test_a_new_letter_says_what_the_entry_said(self, store: DeadLetterStore) -> None:
        entry = an_entry(attempts=3)

        letter_id, recorded = await store.record(entry)

        found = await letter(store, letter_id)
        assert recorded is Recorded.NEW
        assert (found.id, found.status, found.how) == (letter_id, Status.PENDING, None)
        assert (found.message, found.queue, found.handler) == (entry.message, entry.queue, entry.handler)
        assert (found.identity, found.group_id) == (entry.identity, entry.fingerprint.id)
        assert (found.kind, found.type, found.text) == (
            "permanent",
            "shop.errors.NoCustomer",
            "order 17 has no customer",
        )
        assert (found.generation, found.revision, found.deliveries, found.attempts) == (1, 0, 1, 3)
        assert (found.created_at, found.first_attempt_at, found.last_attempt_at) == (
            entry.at,
            entry.failures[0].at,
            entry.failures[-1].at,
        )
        assert [revision.message for revision in found.revisions] == [entry.message]
        assert [(line.what, line.by, line.after) for line in found.history] == [
            ("recorded", "consumer", "PENDING")
        ]

    async def test_several_are_recorded_together_as_one_after_the_other(self, store: DeadLetterStore) -> None:
        known, _ = await store.record(an_entry("known"))

        answers = await store.record_together([an_entry(name) for name in ("new", "known", "other", "new")])

        assert [how for _, how in answers] == [Recorded.NEW, Recorded.AGAIN, Recorded.NEW, Recorded.AGAIN]
        assert (answers[1][0], answers[3][0]) == (known, answers[0][0])
        found = {each.id: each.identity for each in await store.find(LetterQuery())}
        assert found == {answers[0][0]: "new", known: "known", answers[2][0]: "other"}

    async def test_of_several_that_cannot_all_be_recorded_none_is(self, store: DeadLetterStore) -> None:
        without_failures = msgspec.structs.replace(an_entry("bad"), failures=())

        with pytest.raises(Exception):  # noqa: B017,PT011  whatever the driver says
            await store.record_together([an_entry("first"), without_failures, an_entry("last")])

        assert await store.find(LetterQuery()) == []
        assert (await store.statistics()).total == 0

    async def test_the_history_tells_who_handed_it_in_each_time(self, store: DeadLetterStore) -> None:
        first, second = an_entry("m-1"), an_entry("m-1", quarantine="nobody understands it", at=_LATER)
        letter_id, _ = await store.record(msgspec.structs.replace(first, by="collector"))
        await store.record(msgspec.structs.replace(second, by="somebody"))

        found = await letter(store, letter_id)
        assert [(line.what, line.by) for line in found.history] == [
            ("recorded", "collector"),
            ("quarantined", "somebody"),
        ]
        assert [revision.by for revision in found.revisions] == ["collector"]

    @pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
    async def test_properties_come_back_byte_for_byte(
        self, store: DeadLetterStore, properties: bytes | None
    ) -> None:
        message = a_message(properties=properties)
        letter_id, _ = await store.record(an_entry(message=message))

        found = await letter(store, letter_id)

        assert [found.message, *(each.message for each in found.revisions)] == [message, message]
        assert (await claimed(store, letter_id)).message == message

    async def test_many_at_once_keep_each_its_own_properties(self, store: DeadLetterStore) -> None:
        messages = [a_message(properties=each) for each in [*PROPERTIES.values()] * 14]

        recorded = await asyncio.gather(*(store.record(an_entry(message=each)) for each in messages))

        assert [(await letter(store, letter_id)).message for letter_id, _ in recorded] == messages

    async def test_a_further_delivery_does_not_change_the_properties(self, store: DeadLetterStore) -> None:
        first, second = (a_message(id="it", properties=each) for each in (b"first", b"second"))
        letter_id, _ = await store.record(an_entry("it", message=first))

        assert (await store.record(an_entry("it", message=second, at=_LATER)))[1] is Recorded.AGAIN

        assert (await letter(store, letter_id)).message == first

    @pytest.mark.parametrize("body", BODIES, ids=lambda body: "none" if body is None else f"{len(body)} bytes")
    @pytest.mark.parametrize("key", [None, b"", b"\x00\xff"])
    async def test_body_and_key_come_back_byte_for_byte(
        self, store: DeadLetterStore, body: bytes | None, key: bytes | None
    ) -> None:
        message = a_message(body=body, key=key)

        letter_id, _ = await store.record(an_entry(message=message))

        found = (await letter(store, letter_id)).message
        assert (found.body, found.key) == (body, key)
        assert (await claimed(store, letter_id)).message == message
        assert [each.message for each in await store.find(LetterQuery(bodies=True))] == [message]

    @pytest.mark.parametrize("headers", HEADERS)
    async def test_headers_keep_their_order_their_repeats_and_their_types(
        self, store: DeadLetterStore, headers: tuple[tuple[str, Any], ...]
    ) -> None:
        letter_id, _ = await store.record(an_entry(message=a_message(headers=headers)))

        found = (await letter(store, letter_id)).message.headers
        assert found == headers
        assert [type(value) for _, value in found] == [type(value) for _, value in headers]

    @pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=shown)
    async def test_ids_and_names_may_be_any_text(self, store: DeadLetterStore, text: str) -> None:
        message = a_message(id=text, queue=text, source=text)
        entry = an_entry(f"identity {text}", message=message, queue=text, handler=text)

        letter_id, recorded = await store.record(entry)

        found = await letter(store, letter_id)
        assert recorded is Recorded.NEW
        assert (found.message, found.queue, found.handler) == (message, text, text)
        assert found.identity == f"identity {text}"
        assert await store.record(entry) == (letter_id, Recorded.AGAIN)
        [listed] = await store.find(LetterQuery(queue=text, handler=text))
        assert listed.id == letter_id
        assert [group.queue for group in await store.groups(queue=text)] == [text]
        assert (await store.statistics()).by_queue == {text: 1}
        assert (await claimed(store, letter_id)).target == text

    async def test_every_identity_is_a_letter_of_its_own_however_long_or_alike(
        self, store: DeadLetterStore
    ) -> None:
        long = ["x" * 5_000, "x" * 5_001, "\ud800" * 500, "\ud801" * 500]
        identities = [text for text in HOSTILE_TEXTS if text] + long

        ids = [(await store.record(an_entry(identity)))[0] for identity in identities]

        assert [(await letter(store, each)).identity for each in ids] == identities
        assert [(await store.record(an_entry(each)))[0] for each in identities] == ids

    async def test_an_identity_that_looks_like_a_digest_of_another_is_another(
        self, store: DeadLetterStore
    ) -> None:
        long = "x" * 5_000
        digests = [f"{name}:{hashlib.new(name, long.encode()).hexdigest()}" for name in ("sha256", "md5")]

        ids = {(await store.record(an_entry(identity)))[0] for identity in (long, *digests)}

        assert len(ids) == 3

    async def test_no_source_and_an_empty_source_are_told_apart(self, store: DeadLetterStore) -> None:
        nothing, _ = await store.record(an_entry(message=a_message(source=None)))
        empty, _ = await store.record(an_entry(message=a_message(source="")))

        assert (await letter(store, nothing)).message.source is None
        assert (await letter(store, empty)).message.source == ""

    @pytest.mark.parametrize(
        "moment",
        [
            datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(1, 1, 1, tzinfo=UTC),
            datetime.max.replace(tzinfo=UTC),
            datetime(2026, 7, 1, 9, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        ],
    )
    async def test_times_are_exact_to_the_microsecond(self, store: DeadLetterStore, moment: datetime) -> None:
        letter_id, _ = await store.record(an_entry(message=a_message(sent_at=moment)))

        found = (await letter(store, letter_id)).message.sent_at
        assert found == moment
        assert found.utcoffset() == timedelta(0)

    async def test_a_quarantined_entry_becomes_a_quarantined_letter(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry(quarantine="3 process deaths"))

        found = await letter(store, letter_id)
        assert (found.status, found.how) == (Status.QUARANTINED, "3 process deaths")
        assert found.history[-1].after == "QUARANTINED"

    async def test_sd2_every_attempt_is_kept_with_its_trace(self, store: DeadLetterStore) -> None:
        entry = an_entry(attempts=5)

        letter_id, _ = await store.record(entry)
        claim = await sent(store, letter_id)
        again = returned(claim, attempts=4, at=_LATER)
        await store.record(again)

        found = await letter(store, letter_id)
        assert found.failures == (*entry.failures, *again.failures)
        assert found.generations == (1, 1, 1, 1, 1, 2, 2, 2, 2)
        assert [failure.trace for failure in found.failures[:5]] == [each.trace for each in entry.failures]
        assert "attempt 3" in found.failures[2].trace
        assert found.attempts == 9

    async def test_a_redelivery_is_counted_and_its_failures_are_folded_once(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry("it", attempts=2))

        again = await store.record(an_entry("it", attempts=3, at=_LATER))

        found = await letter(store, letter_id)
        assert again == (letter_id, Recorded.AGAIN)
        assert (found.deliveries, found.attempts, found.generation) == (2, 3, 1)
        assert [failure.attempt for failure in found.failures] == [1, 2, 3]
        assert found.failures[:2] == an_entry("it", attempts=2).failures
        assert (found.last_attempt_at, found.created_at) == (_LATER, NOON)

    async def test_the_same_entry_again_changes_nothing(self, store: DeadLetterStore) -> None:
        entry = an_entry(attempts=2)
        letter_id, _ = await store.record(entry)
        before = await state(store, letter_id)

        assert await store.record(entry) == (letter_id, Recorded.AGAIN)

        assert await state(store, letter_id) == before

    async def test_a_redelivery_written_again_changes_nothing(self, store: DeadLetterStore) -> None:
        letter_id, _ = await store.record(an_entry("it"))
        again = an_entry("it", at=_LATER)
        await store.record(again)
        before = await state(store, letter_id)

        await store.record(again)

        assert before.letter is not None
        assert before.letter.deliveries == 2
        assert await state(store, letter_id) == before

    @pytest.mark.parametrize("status", Status)
    async def test_a_redelivery_leaves_the_status_as_it_is(self, store: DeadLetterStore, status: Status) -> None:
        placed = await place(store, status, an_entry("it"))

        assert await store.record(an_entry("it", at=_LATER)) == (placed.id, Recorded.AGAIN)

        found = await letter(store, placed.id)
        assert (found.status, found.deliveries) == (status, 2)

    async def test_a_redelivery_that_must_be_quarantined_quarantines_a_pending_letter(
        self, store: DeadLetterStore
    ) -> None:
        letter_id, _ = await store.record(an_entry("it"))

        await store.record(an_entry("it", at=_LATER, quarantine="3 process deaths"))

        found = await letter(store, letter_id)
        assert (found.status, found.how) == (Status.QUARANTINED, "3 process deaths")
        assert found.history[-1].what == "quarantined"

    async def test_a_letter_is_recorded_once_by_many_at_once(
        self, store: DeadLetterStore, other: DeadLetterStore
    ) -> None:
        entries = [an_entry("it", at=NOON + timedelta(seconds=number)) for number in range(20)]

        done = await asyncio.gather(
            *((store if number % 2 else other).record(entry) for number, entry in enumerate(entries))
        )

        assert len({letter_id for letter_id, _ in done}) == 1
        assert sorted(recorded for _, recorded in done) == [Recorded.AGAIN] * 19 + [Recorded.NEW]
        assert (await letter(store, done[0][0])).deliveries == 20
        assert [group.total for group in await store.groups()] == [1]

    async def test_what_a_forged_trail_may_hold_is_recorded_all_the_same(self, store: DeadLetterStore) -> None:
        odd = Failure(
            attempt=2**63,
            at=NOON,
            kind=FailureKind.TRANSIENT,
            handler="\ud800",
            chain=(Raised("", "", (), "no such link"),),
            host=Host(name="\udfff", process=2**63),
        )
        huge = msgspec.structs.replace(
            a_failure(2), chain=(Raised("t" * 100_000, "\x00" * 1_000_000, a_failure().frames * 10_000),)
        )

        letter_id, _ = await store.record(an_entry(failures=(huge, odd)))

        found = await letter(store, letter_id)
        assert [failure.attempt for failure in found.failures] == [2, 2**63]
        assert found.failures[0].text.startswith("\x00\x00")
        assert all(len(failure.text) < 2_000 for failure in found.failures)
        assert len(found.text) < 2_000
        assert all(isinstance(failure.trace, str) for failure in found.failures)
