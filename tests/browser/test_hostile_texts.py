"""TH1: whatever a text of a message or a name says, pages show it as text. Every field, every page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import islice
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from browser.conftest import ON_SQLITE, House, Visitor
from browser.hostile_store import HOUR, IN_AN_HOUR, MANY, MERGED, Hostile, filled, group_of
from browser.suspicion import Suspicion
from support.desk import Desk
from support.markup import EVERY, UNSEEN
from support.patience import until

pytestmark = ON_SQLITE
_TABS = ("failure", "payload", "headers", "story", "related")
_ENOUGH = 50
"""Texts, at least, that each page has to have shown."""
_OF_RUNS = ("Why", "Asked by", "Goes to", "Changes")
"""What the plan of a run says in the words of whoever made it."""


@pytest.fixture(scope="module")
def hostile(desk: Desk) -> Hostile:
    return filled(desk)


@pytest_asyncio.fixture(loop_scope="module")
async def suspicion(
    hostile: Hostile,  # noqa: ARG001  the pages show it
    house: House,
    visitor: Visitor,
) -> AsyncIterator[Suspicion]:
    made = await Suspicion.of(await visitor.open("/nowhere"), house.url)
    yield made
    assert made.found == []


def _told(text: str) -> str:
    """Some of it that pages show as it is: what cannot be seen is an escape there."""
    return max(re.findall("[!-~ ]+", text), key=len, default="").strip()[:36]


async def _shown_in(place: Locator) -> set[str]:
    seen = await place.inner_text()
    return {told for told in map(_told, EVERY) if told and told in seen}


async def _load(rows: Locator, number: int) -> None:
    """So many of an endless list, which goes on when its end is seen."""

    async def enough() -> bool:
        await rows.last.evaluate("(row) => row.scrollIntoView()")
        return await rows.count() >= number

    await until(enough)


async def test_pages_of_letters(suspicion: Suspicion, hostile: Hostile) -> None:
    page = suspicion.page
    await page.goto("/letters")
    rows = page.get_by_role("table", name="Letters").get_by_role("row")
    await _load(rows, 1 + len(EVERY))
    await suspicion.settle(r"invoice\u202egpj.exe")
    assert len(await _shown_in(page.get_by_role("main"))) > _ENOUGH
    for text in EVERY:
        await suspicion.go(f"/letters/{hostile.letters[text]}", hostile.letters[text])
        await expect(page.get_by_role("main")).to_contain_text(_told(text)[:12])
    await _look_into_one(suspicion, hostile.letters["all"])


async def _look_into_one(suspicion: Suspicion, letter_id: str) -> None:
    page, letter = suspicion.page, f"/letters/{letter_id}"
    for tab in _TABS:
        await suspicion.go(f"{letter}#tab={tab}", letter_id)
        await expect(page.get_by_role("tab", selected=True)).to_have_text(re.compile(tab, re.IGNORECASE))
        await expect(page.get_by_role("tabpanel")).to_contain_text("<script>")
        await suspicion.settle()
    await suspicion.go(f"{letter}#tab=payload&view=raw", UNSEEN[0][:7])
    await suspicion.go(f"{letter}#tab=payload&view=hex", "3c 73 63 72 69 70 74")


async def test_pages_of_groups(suspicion: Suspicion) -> None:
    page = suspicion.page
    await page.goto("/groups")
    await _load(page.get_by_role("table").get_by_role("row"), 1 + len(EVERY))
    await suspicion.settle()
    assert len(await _shown_in(page.get_by_role("main"))) > _ENOUGH
    for number, text in enumerate(EVERY):
        await suspicion.go(f"/groups/{group_of(text).id}")
        known = page.locator("section").filter(has=page.get_by_role("heading", name="What we know"))
        await expect(known).to_contain_text(_told(text)[:12])
        await suspicion.settle("wrote a note")
        if number % 2:
            await known.get_by_role("button", name="Edit").click()
            await expect(known.get_by_role("textbox", name="Note")).to_be_visible()
            await suspicion.settle()
    await _look_at_what_can_be_merged(suspicion)
    await _look_at_the_overview(suspicion)


async def _look_at_what_can_be_merged(suspicion: Suspicion) -> None:
    """The dialog shows some, and others when one looks for them."""
    page = suspicion.page
    await suspicion.go(f"/groups/{group_of('key', MERGED).id}", "What we know")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Merge other groups").click()
    dialog, seen = page.get_by_role("dialog"), set[str]()
    for text in ("script", "onerror", "onfocus", "attacker", "javascript", "svg", "{", "name", "o", "r"):
        async with page.expect_response(lambda answer: "/api/v1/groups?" in answer.url):
            await dialog.get_by_role("textbox").first.fill(text)
        await expect(dialog.locator(".mantine-Skeleton-root")).to_have_count(0)
        await expect(dialog.get_by_role("checkbox").first).to_be_visible()
        await suspicion.settle()
        seen |= await _shown_in(dialog)
    assert len(seen) > _ENOUGH
    await page.keyboard.press("Escape")


async def _look_at_the_overview(suspicion: Suspicion) -> None:
    """Of an hour, and then of those before it."""
    page, seen = suspicion.page, set[str]()
    broken = page.locator("section").filter(has=page.get_by_role("heading", name="What broke"))
    for hours, text in enumerate(EVERY[::IN_AN_HOUR]):
        end = HOUR - timedelta(hours=hours)
        span = {"from": (end - timedelta(hours=1)).isoformat(), "to": end.isoformat()}
        await suspicion.go(f"/#{urlencode(span)}", "What broke")
        await expect(broken).to_contain_text(_told(text)[:12])
        await suspicion.settle()
        seen |= await _shown_in(broken)
    assert len(seen) > _ENOUGH


async def test_pages_of_runs_and_queues(suspicion: Suspicion, hostile: Hostile) -> None:
    page = suspicion.page
    await page.goto("/runs")
    await _load(page.get_by_role("table").get_by_role("row"), 1 + len(hostile.runs))
    await suspicion.settle()
    assert len(await _shown_in(page.get_by_role("main"))) > _ENOUGH
    for text, run_id in hostile.runs.items():
        await suspicion.go(f"/runs/{run_id}", run_id[:13])
        plan = page.get_by_role("region", name="What it does")
        for field in _OF_RUNS:
            value = plan.locator("dl > div").filter(has=page.get_by_text(field, exact=True))
            await expect(value).to_contain_text(_told(text)[:12])
        await expect(page.get_by_role("region", name="History")).to_contain_text(_told(text)[:12])
        await suspicion.settle()
    await suspicion.go("/queues", "<script>owned()")
    assert len(await _shown_in(page.get_by_role("table"))) > _ENOUGH


async def test_the_page_of_alerts(suspicion: Suspicion) -> None:
    page = suspicion.page
    await page.goto("/alerts")
    over = page.locator("section").filter(has=page.get_by_role("heading", name="Over"))
    await expect(over.get_by_role("row")).to_have_count(1 + len(MANY))
    await suspicion.settle()
    assert len(await _shown_in(over)) > _ENOUGH
    for link in await over.get_by_role("link").all():
        where = await link.get_attribute("href") or ""
        assert where.startswith("/")
        assert not where.startswith("//")
    await over.get_by_role("button", name="Wake").first.click()
    await expect(page.get_by_role("dialog", name="Wake the alert")).to_be_visible()
    await suspicion.settle()


async def test_pages_about_people(suspicion: Suspicion) -> None:
    page = suspicion.page
    await page.goto("/audit")
    await _load(page.get_by_role("table").get_by_role("row"), 200)
    await suspicion.settle()
    assert len(await _shown_in(page.get_by_role("main"))) > _ENOUGH
    details = page.get_by_role("button", name="Details of row")
    for number in range(_ENOUGH + 1):
        await details.nth(number).click()
    await suspicion.settle()
    for tab in ("tokens", "users"):
        await suspicion.go(f"/settings#tab={tab}")
        await expect(page.get_by_role("tab", selected=True)).to_have_text(re.compile(tab, re.IGNORECASE))
        await expect(page.get_by_role("tabpanel")).to_contain_text(MANY[10])
        assert len(await _shown_in(page.get_by_role("tabpanel"))) > _ENOUGH
        await suspicion.settle()
    await page.get_by_role("button", name=f"Change {MANY[10]}", exact=True).click()
    await page.get_by_role("menuitem", name="Change roles").click()
    await suspicion.settle("They hold at once")
    await page.keyboard.press("Escape")
    for tab, shown in {"me": "ann", "loaded": "Retention"}.items():
        await suspicion.go(f"/settings#tab={tab}", shown)


async def test_dialogs_about_letters(suspicion: Suspicion, hostile: Hostile) -> None:
    await suspicion.page.goto("/letters")
    await _edit_one(suspicion, hostile.letters[EVERY[0]])
    left, seen = iter(MANY[1:]), set[str]()
    while some := list(islice(left, 5)):  # so many queues and groups are told of a run
        seen |= await _edit_many(suspicion, [hostile.letters[text] for text in some])
        if len(seen) > _ENOUGH:
            return
    pytest.fail(f"only {len(seen)} were shown")


async def _edit_one(suspicion: Suspicion, letter_id: str) -> None:
    page = suspicion.page
    await suspicion.go(f"/letters/{letter_id}", letter_id)
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


async def _edit_many(suspicion: Suspicion, ids: list[str]) -> set[str]:
    """What the dialog shows when that many letters are to be changed and sent."""
    page = suspicion.page
    await suspicion.go("/letters#" + urlencode({"q": f"id:{','.join(ids)}"}))
    await expect(page.get_by_role("table", name="Letters").get_by_role("row")).to_have_count(1 + len(ids))
    await page.get_by_role("checkbox", name="Select all that are listed").check()
    await page.get_by_role("button", name="Redrive", exact=True).click()
    dialog = page.get_by_role("dialog", name="Redrive letters")
    await dialog.get_by_role("checkbox", name="Change messages before").check()
    await dialog.get_by_role("combobox", name="Operation 1").select_option("remove")
    await dialog.get_by_role("textbox", name="Place").fill("nested")
    await suspicion.settle("Samples, before and after")
    seen = await _shown_in(dialog)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    return seen
