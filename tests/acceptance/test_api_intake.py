"""Dead letters of consumers that are not ours, handed in over HTTP (TH24)."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redrive.access import Role
from redrive.dead_letter import Status
from support.api_house import House, open_house

INGEST = Role.INGEST
GIVEN: dict[str, Any] = {
    "queue": "orders",
    "handler": "charge",
    "message_id": "order-17",
    "body": '{"order": 17}',
    "headers": [["trace", "abc"], ["trace", "def"]],
    "error_type": "java.io.IOException",
    "error_text": "connection reset by 10.0.0.1",
    "attempt": 3,
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


async def test_what_is_handed_in_is_a_letter_like_any_other_and_goes_back_byte_for_byte(house: House) -> None:
    made = await house.ask("POST", "/letters", INGEST, json=GIVEN)
    assert made.status_code == 201

    letter = await house.store.get(made.json()["letter_id"])
    assert letter is not None
    assert (letter.message.body, letter.message.headers) == (
        b'{"order": 17}',
        (("trace", "abc"), ("trace", "def")),
    )
    assert (letter.type, letter.attempts, letter.status) == ("java.io.IOException", 3, Status.PENDING)
    assert letter.history[0].by == "token:ingest of test"
    await house.ask("POST", f"/dlq/{letter.id}/retry", Role.OPERATOR)
    await house.carry_out()
    delivery = await anext(aiter(house.transport.receive("orders", prefetch=1)))
    assert delivery.message.body == b'{"order": 17}'


async def test_the_same_message_again_is_the_same_letter_and_another_body_is_not(house: House) -> None:
    first = (await house.ask("POST", "/letters", INGEST, json=GIVEN)).json()
    again = (await house.ask("POST", "/letters", INGEST, json={**GIVEN, "attempt": 4})).json()
    other = (await house.ask("POST", "/letters", INGEST, json={**GIVEN, "body": "{}"})).json()
    elsewhere = (await house.ask("POST", "/letters", INGEST, json={**GIVEN, "queue": "orders2"})).json()

    assert again["letter_id"] == first["letter_id"]
    assert (first["recorded"], again["recorded"]) == ("new", "again")
    assert len({first["letter_id"], other["letter_id"], elsewhere["letter_id"]}) == 3


async def test_any_bytes_can_be_handed_in_up_to_sixteen_megabytes(house: House) -> None:
    raw = bytes(range(256)) * (8 << 12)
    given = {**GIVEN, "body": base64.b64encode(raw).decode(), "body_encoding": "base64"}

    made = await house.ask("POST", "/letters", INGEST, json=given)
    too_large = await house.ask("POST", "/letters", INGEST, content=b" " * ((16 << 20) + 1))

    letter = await house.store.get(made.json()["letter_id"])
    assert letter is not None
    assert letter.message.body == raw
    assert too_large.status_code == 413


async def test_a_token_hands_in_letters_of_its_own_queues_and_does_nothing_else(house: House) -> None:
    own = await house.ask("POST", "/letters", INGEST, queues=("orders*",), json=GIVEN)
    foreign = {**GIVEN, "queue": "payments"}
    other = await house.ask("POST", "/letters", INGEST, queues=("orders*",), json=foreign)
    look = await house.ask("GET", f"/dlq/{own.json()['letter_id']}", INGEST, queues=("orders*",))

    assert (own.status_code, other.status_code, look.status_code) == (201, 403, 403)


@pytest.mark.parametrize(
    "wrong",
    [{"queue": ""}, {"error_type": ""}, {"attempt": 0}, {"body_encoding": "base64"}, {"headers": [1]}],
    ids=str,
)
async def test_what_is_wrong_is_told_and_nothing_is_recorded(house: House, wrong: dict[str, Any]) -> None:
    refused = await house.ask("POST", "/letters", INGEST, json={**GIVEN, **wrong})

    assert refused.status_code == 422
    assert (await house.store.statistics()).total == 0
