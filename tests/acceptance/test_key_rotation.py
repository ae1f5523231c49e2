"""A new key takes over while letters arrive: nothing becomes unreadable, and no request fails (K21)."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from redrive.dead_letter import DeadLetter
from redrive.key_sources import key_in
from redrive.letter_query import LetterQuery, Place
from redrive.privacy.encryption.local_keys import LocalKeys
from redrive.stores import open_store
from redrive.stores.sealing import Encryption
from support.desk import Desk
from support.serving import Served, serving

PER_SECOND = 200
LETTERS = 600
QUEUES = 40


def _settings(folder: Path, url: str | None, current: str, *others: str) -> None:
    store = "" if url is None else f'[store]\nurl = "{url}"\n'
    named = ", ".join(f'"{each}"' for each in others)
    keys = f'[encryption]\nenabled = true\nkey_path = "{current}"\nold_keys = [{named}]\n'
    (folder / "redrive.toml").write_text(store + keys)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_new_key_takes_over_while_letters_arrive(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = None if kind == "sqlite" else request.getfixturevalue("postgres_store_url")
    desk = Desk(tmp_path, store_url=url)
    for name in ("old.key", "new.key"):
        assert desk.redrive("keys", "new", name).code == 0
    # The server can open what the new key wraps, and does not wrap with it yet.
    _settings(tmp_path, url, "old.key", "new.key")
    with serving(desk) as server:
        _settings(tmp_path, url, "new.key", "old.key")
        token = desk.redrive("tokens", "create", "intake", "--grant", "ingest").out.strip()
        bodies, rotations = asyncio.run(_load(desk, server, token))
    assert rotations >= 2
    assert len(bodies) == LETTERS

    assert desk.redrive("keys", "rotate").code == 0
    listed = json.loads(desk.redrive("keys", "list", "--output", "json").out)
    assert {row["place"]: row["wraps"] for row in listed} == {"new.key": QUEUES, "old.key": 0}
    found = asyncio.run(_read(desk.store_url, tmp_path / "new.key"))
    assert found == bodies, "with the new key alone"


async def _load(desk: Desk, server: Served, token: str) -> tuple[dict[str, bytes], int]:
    """Letters at a fixed rate, reading in between, and rotations one after the other."""
    bodies: dict[str, bytes] = {}
    arrived = asyncio.Event()
    ingest = {"authorization": f"Bearer {token}"}
    headers = {"authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers, timeout=60) as client:
        begun = time.monotonic()

        async def send(numbers: itertools.count[int]) -> None:
            while (number := next(numbers)) < LETTERS:
                await asyncio.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))  # its turn
                body = f'{{"number": {number}, "secret": "Grace {number}"}}'
                given = {"queue": f"q{number % QUEUES}", "error_type": "ValueError", "body": body}
                answer = await client.post("/letters", json=given, headers=ingest)
                assert answer.status_code == 201, answer.text
                bodies[answer.json()["letter_id"]] = body.encode()

        async def read() -> None:
            while not arrived.is_set():
                page = await client.get("/dlq", params={"limit": 20})
                assert page.status_code == 200, page.text
                for each in page.json()["items"][:3]:
                    letter = await client.get(f"/dlq/{each['id']}")
                    assert letter.status_code == 200, letter.text
                    assert letter.json()["unreadable"] is None

        async def rotate() -> int:
            done = 0
            while not arrived.is_set() or done < 2:
                ended = await asyncio.to_thread(desk.process, "keys", "rotate")
                assert ended.returncode == 0, ended.stderr
                done += 1
            return done

        async def arrive() -> None:
            numbers = itertools.count()
            await asyncio.gather(*(send(numbers) for _ in range(16)))
            arrived.set()

        _, _, rotations = await asyncio.gather(arrive(), read(), rotate())
    return bodies, rotations


async def _read(url: str, key: Path) -> dict[str, bytes]:
    store = open_store(url, encryption=Encryption(LocalKeys([key_in(key)])))
    try:
        found: list[DeadLetter] = []
        query = LetterQuery(limit=500)
        while page := await store.find(query):
            found += page
            query = replace(query, after=Place.of(page[-1]))
        ids = [each.id for each in found]
        return {each.id: each.message.body or b"" async for each in store.whole(ids) if each.unreadable is None}
    finally:
        await store.close()
