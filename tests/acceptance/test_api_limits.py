"""What no client can do to the API, and what every answer has (TH25)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redrive.access import Role
from redrive.api.guards import HEADERS, MAX_BODY, MAX_LETTER, MAX_QUERY
from redrive.dead_letter import Status
from support.api_house import House, open_house
from support.dead_letters import foreign
from support.loopback_ports import free_ports

DEEP = "[" * 20_000 + "]" * 20_000


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


async def test_a_body_that_is_too_large_is_refused_whether_or_not_its_length_is_told(house: House) -> None:
    letter_id = await house.letter()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY // 1024 + 2):
            yield b" " * 1024

    told = await house.ask("POST", f"/dlq/{letter_id}/restore", Role.ADMIN, content=b" " * (MAX_BODY + 1))
    untold = await house.ask("POST", f"/dlq/{letter_id}/restore", Role.ADMIN, content=endless())

    assert (told.status_code, untold.status_code) == (413, 413)


async def test_a_body_that_is_edited_may_be_as_large_as_one_that_is_handed_in(house: House) -> None:
    letter_id = await house.letter(message=foreign(b"{}"))

    async def edited(size: int) -> int:
        text = json.dumps({"reason": "a test", "body": "x" * size}).encode()
        headers = {"if-match": '"0"', "content-type": "application/json"}
        return (
            await house.ask("POST", f"/dlq/{letter_id}/revisions", Role.ADMIN, content=text, headers=headers)
        ).status_code

    assert await edited(MAX_LETTER) == 413
    assert await edited(MAX_LETTER - 100) == 201


async def test_who_may_not_edit_is_told_so_before_the_body_is_read(house: House) -> None:
    letter_id, read = await house.letter(), 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(15):
            read += 1
            yield b" " * MAX_BODY

    refused = await house.ask("POST", f"/dlq/{letter_id}/revisions", Role.VIEWER, content=body())

    assert (refused.status_code, read) == (403, 0)


async def test_a_query_that_is_too_long_is_refused(house: House) -> None:
    assert (await house.ask("GET", f"/dlq?q={'x' * MAX_QUERY}", Role.ADMIN)).status_code == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", DEEP.encode(), b'{"ids":' + DEEP.encode() + b"}", b"1" * 5000],
    ids=["empty", "half", "list", "null", "not UTF-8", "deep", "deep inside", "digits"],
)
async def test_a_body_that_is_no_request_is_told_so(house: House, body: bytes) -> None:
    sent = await house.ask("POST", "/dlq-changes", Role.ADMIN, content=body)

    assert sent.status_code == 422
    assert sent.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [DEEP.encode(), b'"' + b"x" * (16 << 20) + b'"', b"\x00" * 1000, b'{"a": 1e999}'],
    ids=["deep", "long", "binary", "huge number"],
)
async def test_a_payload_of_any_kind_does_not_break_a_page(house: House, body: bytes) -> None:
    letter_id = await house.letter(message=foreign(body))

    for path in ("/dlq", f"/dlq/{letter_id}", f"/dlq/{letter_id}/attempts", f"/dlq/{letter_id}/revisions"):
        shown = await house.ask("GET", path, Role.ADMIN)
        assert shown.status_code == 200, path
        json.loads(shown.content)
        assert len(shown.content) < 4 << 20, path


async def test_the_requests_of_one_token_at_the_same_time_are_bounded(house: House) -> None:
    token = {"authorization": f"Bearer {await house.token(Role.VIEWER)}"}
    other = {"authorization": f"Bearer {await house.token(Role.ADMIN)}"}
    answers = await asyncio.gather(
        *(house.client.get("/api/v1/dlq", headers=token) for _ in range(60)),
        house.client.get("/api/v1/dlq", headers=other),
    )

    codes = [each.status_code for each in answers]
    assert codes[-1] == 200
    assert set(codes) == {200, 429}
    assert (await house.client.get("/api/v1/dlq", headers=token)).status_code == 200


async def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    async with open_house(tmp_path, request_timeout=0.001) as house:
        await house.letter()
        late = await house.ask("GET", "/dlq", Role.ADMIN)

    assert late.status_code == 503
    assert late.headers["retry-after"]


async def test_a_store_that_is_away_is_told_with_when_to_try_again(tmp_path: Path) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_ports(1)[0]}/none"
    async with open_house(tmp_path, store_url=url) as house:
        token = {"authorization": "Bearer rdv_" + "a" * 12 + "_" + "0" * 64}
        away = await house.client.get("/api/v1/dlq", headers=token)
        ready = await house.client.get("/readyz?verbose")
        alive = await house.client.get("/livez")

    assert (away.status_code, away.headers["content-type"]) == (503, "application/problem+json")
    assert int(away.headers["retry-after"]) > 0
    assert str(url) not in away.text
    assert (ready.status_code, ready.text) == (503, "[-] store unreachable\n")
    assert alive.status_code == 200


async def test_every_answer_has_its_request_id_and_the_headers_that_browsers_obey(house: House) -> None:
    paths: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/livez", {}),
        ("GET", "/docs", {}),
        ("GET", "/nothing", {}),
        ("GET", "/api/v1/dlq", {}),
        ("POST", "/api/v1/livez", {}),
        ("GET", "/api/v1/dlq?token=x", {}),
    ]
    for method, path, more in paths:
        got = await house.client.request(method, path, headers={"x-request-id": "abc-1"}, **more)
        assert got.headers["x-request-id"] == "abc-1"
        for name, value in HEADERS:
            assert got.headers[name.decode()] == value.decode(), path
    forged = await house.client.get("/livez", headers={"x-request-id": "a b\tc<script>"})
    assert "<" not in forged.headers["x-request-id"]


async def test_long_answers_are_zipped_for_those_who_can_read_it(house: House) -> None:
    for _ in range(20):
        await house.letter()
    headers = {"authorization": f"Bearer {await house.token(Role.VIEWER)}", "accept-encoding": "gzip"}

    async with house.client.stream("GET", "/api/v1/dlq", headers=headers) as zipped:
        raw = b"".join([part async for part in zipped.aiter_raw()])

    assert zipped.headers["content-encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(raw))["items"]) == 20


async def test_behind_a_proxys_path_everything_is_found(tmp_path: Path) -> None:
    async with open_house(tmp_path, root_path="/redrive") as house:
        letter_id = await house.letter()
        sent = await house.ask("POST", f"/dlq/{letter_id}/retry", Role.ADMIN)
        docs = await house.client.get("/docs")

        assert sent.headers["location"].startswith("/redrive/api/v1/runs/")
        assert 'href="/redrive/api/v1/openapi.json"' in docs.text
        letter = await house.store.get(letter_id)
        assert letter is not None
        assert letter.status is Status.PENDING
