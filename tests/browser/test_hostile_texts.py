"""TH1: whatever a text of a message says, pages show it as text. Every field, every page."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from playwright.async_api import expect

from browser.conftest import ON_SQLITE, House, Visitor
from browser.suspicion import Suspicion
from redrive.clock import new_id
from redrive.dead_letter import Actor, Entry, Fingerprint
from redrive.failure import Failure, FailureKind, Frame, Host, Raised
from redrive.message import Message
from redrive.stores import DeadLetterStore
from redrive.transports import Transport
from support.desk import Desk
from support.markup import EVERY, UNSEEN

_NOW = datetime.now(UTC)
_TABS = ("failure", "payload", "headers", "story", "related")
_MANY = EVERY[:-3]
"""Those of which many fit on a page."""
_ON_GROUP_PAGES = EVERY[::3]


def _group_of(text: str) -> Fingerprint:
    return Fingerprint(id=hashlib.sha256(text.encode()).hexdigest()[:32], title=f"{text}: {text}")


def _failure(text: str, frames: tuple[str, ...]) -> Failure:
    traced = tuple(Frame(each, 7, each, each, own=bool(number % 2)) for number, each in enumerate(frames))
    chain = tuple(Raised(text, text, traced, link) for link in (text, "cause", ""))
    host = Host(name=text, process=1, app=text, app_version=text, environment=text)
    return Failure(attempt=1, at=_NOW, kind=FailureKind.PERMANENT, handler=text, chain=chain, host=host)


def _entry(text: str, others: tuple[str, ...] = (), *, age: int = 0) -> Entry:
    """Everything in it is that text; where there is room for more, it is the others too."""
    every, at = (text, *others), _NOW - timedelta(seconds=age)
    body = {
        "message_id": text,
        "timestamp": at.isoformat(timespec="milliseconds"),
        "version": "1.0",
        "source": text,
        "queue": text,
        "data": {"nested": [text, {text: [text]}]} | {each: each for each in every},
        "metadata": {"correlation_id": text, "event_type": text, text: text},
        "error": None,
        "retry_count": 0,
    }
    message = Message(
        id=text,
        queue=text,
        body=json.dumps(body).encode(),
        sent_at=at,
        headers=(("nested", {text: [text]}), ("table", {text: text}), *((each, each) for each in every)),
        key=text.encode(),
        source=text,
    )
    return Entry(
        identity=text + new_id(),
        message=message,
        queue=text,
        handler=text,
        failures=(_failure(text, every[:60]),),
        fingerprint=_group_of(text),
        at=at,
        first_attempt_at=at,
        quarantine=text if others else None,
        lane=text,
    )


def _filled(desk: Desk) -> dict[str, str]:
    """The id of each text's letter, and of one that has all of them (`all`)."""

    async def work(store: DeadLetterStore, transport: Transport) -> dict[str, str]:
        entries = [_entry(text, age=age) for age, text in enumerate(EVERY)]
        ids = [letter_id for letter_id, _ in await store.record_together([*entries, _entry(_MANY[0], _MANY[1:])])]
        for text in _ON_GROUP_PAGES:
            by = Actor(text[:100], reason=text)
            await store.annotate(_group_of(text).id, owner=text[:60], note=text, runbook=text[:200], by=by)
        for text in filter(str.isprintable, _MANY[::4]):  # the broker takes no others
            await transport.send(_entry(text).message, queue=text)
        return dict(zip((*EVERY, "all"), ids, strict=True))

    found: dict[str, str] = desk.do(work)
    return found


@pytest.fixture
def letters(desk: Desk) -> dict[str, str]:
    """Recorded before the server starts."""
    return _filled(desk)


async def _done_by_people(house: House, letters: dict[str, str]) -> list[str]:
    """Runs, tokens and lines of the audit trail with those texts; the ids of the runs."""
    runs: list[str] = []
    who = {"authorization": f"Bearer {house.served.token}"}
    async with httpx2.AsyncClient(base_url=f"{house.url}/api/v1", headers=who, timeout=60) as client:
        for text in _MANY[2::2]:
            ids = [letters[text]]
            asked: dict[str, Any] = {"selection": {"ids": ids}, "target": text, "reason": text, "rate": 0.001}
            made = await client.post("/runs", json=asked)
            assert made.status_code == 202, made.text
            runs.append(made.json()["run"]["id"])
            await client.post("/tokens", json={"name": text[:64], "grants": [{"role": "viewer"}], "reason": text})
            await client.post("/dlq-changes", json={"change": "resolve", "ids": [letters["all"]], "reason": text})
    return runs


@pytest.fixture
async def suspicion(
    letters: dict[str, str],  # noqa: ARG001  the server finds them
    house: House,
    visitor: Visitor,
) -> AsyncIterator[Suspicion]:
    made = await Suspicion.of(await visitor.open("/nowhere"), house.url)
    yield made
    assert made.found == []


def _shown(text: str) -> str:
    """Some of it that pages show as it is: what cannot be seen is an escape there."""
    return max(re.findall("[!-~]+", text), key=len, default="")[:12]


@ON_SQLITE
async def test_pages_show_texts_of_messages_as_texts(
    suspicion: Suspicion, house: House, letters: dict[str, str]
) -> None:
    await suspicion.page.goto("/letters")
    await _look_at_letters(suspicion, letters)
    await _look_into_one(suspicion, letters["all"])
    await _open_dialogs(suspicion, letters[EVERY[0]])
    for text in _ON_GROUP_PAGES:
        await suspicion.go(f"/groups/{_group_of(text).id}", "What we know")
        await suspicion.settle("wrote a note")
    runs = await _done_by_people(house, letters)
    for path, shown in {"/": "What broke", "/groups": "Cause", "/runs": "Pace", "/queues": "Queue"}.items():
        await suspicion.go(path, shown)
        await suspicion.settle("<script>owned()")
    await suspicion.go("/audit", "<script>owned()")
    for tab, shown in {"me": "ann", "tokens": "<img src=x onerror", "users": "vic", "loaded": "Retention"}.items():
        await suspicion.go(f"/settings#tab={tab}", shown)
    for run_id in runs[::4]:
        await suspicion.go(f"/runs/{run_id}", "What it does")
        await suspicion.settle("History")


async def _look_at_letters(suspicion: Suspicion, letters: dict[str, str]) -> None:
    """In the list, and each on a page of its own."""
    page = suspicion.page
    rows = page.get_by_role("table", name="Letters").get_by_role("row")
    await expect(rows).to_have_count(51)
    await page.get_by_role("button", name="Load more").click()
    await expect(rows).to_have_count(len(EVERY) + 2)
    await suspicion.settle(r"invoice\u202egpj.exe")
    for text in EVERY:
        await suspicion.go(f"/letters/{letters[text]}", letters[text])
        assert _shown(text) in await page.get_by_role("main").inner_text()


async def _look_into_one(suspicion: Suspicion, letter_id: str) -> None:
    page, letter = suspicion.page, f"/letters/{letter_id}"
    for tab in _TABS:
        await suspicion.go(f"{letter}#tab={tab}", letter_id)
        await expect(page.get_by_role("tab", selected=True)).to_have_text(re.compile(tab, re.IGNORECASE))
        await expect(page.get_by_role("tabpanel")).to_contain_text("<script>")
        await suspicion.settle()
    await suspicion.go(f"{letter}#tab=payload&view=raw", UNSEEN[0][:7])
    await suspicion.go(f"{letter}#tab=payload&view=hex", "3c 73 63 72 69 70 74")


async def _open_dialogs(suspicion: Suspicion, letter_id: str) -> None:
    page = suspicion.page
    await suspicion.go(f"/letters/{letter_id}", letter_id)
    await page.get_by_role("button", name="Redrive", exact=True).click()
    await suspicion.settle("What will be sent")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Edit", exact=True).click()
    await suspicion.settle("The real text is needed")
    dialog = page.get_by_role("dialog", name="Edit a letter")
    await dialog.get_by_role("textbox", name="Why").fill(EVERY[0])
    await dialog.get_by_role("button", name="Show the real text and edit it").click()
    await expect(dialog.get_by_role("textbox", name="Payload")).to_contain_text("<script>")
    await suspicion.settle()
    for tab in ("Headers", "Schema"):
        await dialog.get_by_role("tab", name=tab).click()
        await suspicion.settle()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Quarantine").click()
    await page.get_by_role("textbox", name="Why").fill(EVERY[0])
    await page.get_by_role("button", name="Quarantine 1 letter").click()
    await suspicion.settle("1 letter quarantined")
