"""A letter is revealed, edited and sent; and what happens if somebody else was quicker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, Route, expect

from browser.conftest import ON_SQLITE, House, Visitor, Watched
from support.dead_letters import an_order, dead
from support.desk import Desk
from support.failing_shop import FailingShop

pytestmark = ON_SQLITE
BEYOND_DOUBLES = 2**53 + 1


@asynccontextmanager
async def answers_late(page: Page, address: str) -> AsyncIterator[asyncio.Event]:
    """What is asked there is answered after the block; the event tells that it was asked."""
    asked, enough = asyncio.Event(), asyncio.Event()

    async def wait(route: Route) -> None:
        asked.set()
        await enough.wait()
        await route.continue_()

    await page.route(address, wait)
    yield asked
    enough.set()


async def begin_to_edit(page: Page) -> None:
    await page.get_by_role("button", name="Edit", exact=True).click()
    gate = page.get_by_role("dialog", name="Edit a letter")
    await expect(gate.get_by_role("button", name="Show the real text and edit it")).to_be_disabled()
    await gate.get_by_role("textbox", name="Why").fill("the customer was wrong")
    await gate.get_by_role("button", name="Show the real text and edit it").click()


async def test_an_edit_changes_what_was_typed_and_nothing_else(desk: Desk, visitor: Visitor) -> None:
    shop = FailingShop(desk)
    await shop.fail_at({"order_id": BEYOND_DOUBLES, "customer": "nobody", "cents": 1.10})
    page = await visitor.open("/letters")
    await page.get_by_role("link", name="NoCustomer").click()
    await page.get_by_role("tab", name="Payload").click()
    await expect(page.get_by_role("tabpanel")).to_contain_text(str(BEYOND_DOUBLES))
    await begin_to_edit(page)
    dialog = page.get_by_role("dialog", name="Edit a letter")
    editor = dialog.get_by_role("textbox", name="Payload")
    await editor.get_by_text("nobody").click()
    for key in ("End", "ArrowLeft", "ArrowLeft", "Control+Shift+ArrowLeft"):
        await page.keyboard.press(key)
    await page.keyboard.type("ann")
    await expect(dialog.locator(".cm-deletedChunk")).to_contain_text("nobody")
    await expect(editor).to_contain_text(str(BEYOND_DOUBLES))
    await dialog.get_by_role("button", name="Save and redrive").click()
    redrive = page.get_by_role("dialog", name="Redrive letters")
    await redrive.get_by_role("textbox", name="Why").fill("with the right customer")
    await redrive.get_by_role("button", name="Redrive 1 letter").click()
    await expect(page.get_by_text("1 of 1 sent")).to_be_visible()
    await shop.work()
    assert shop.charged == [b'{"order_id":9007199254740993,"customer":"ann","cents":1.1}']
    await page.get_by_role("region", name="Letters").get_by_role("row").nth(1).get_by_role("link").first.click()
    await expect(page.get_by_text("Resolved", exact=True).first).to_be_visible()
    await page.get_by_role("tab", name="Story").click()
    await expect(page.get_by_role("tabpanel")).to_contain_text("Edited: revision 1")


async def test_an_edit_of_somebody_quicker_is_shown_and_not_lost(
    desk: Desk, house: House, visitor: Visitor, watched: Watched
) -> None:
    watched.expected.append("412")
    async with desk.opened() as (store, _transport):
        letter_id, _ = await store.record(dead(an_order(7)))
    page = await visitor.open(f"/letters/{letter_id}")
    await begin_to_edit(page)
    dialog = page.get_by_role("dialog", name="Edit a letter")
    editor = dialog.get_by_role("textbox", name="Payload")
    await editor.get_by_text("7", exact=True).dblclick()
    await page.keyboard.type("8")

    theirs = await page.request.post(
        f"/api/v1/dlq/{letter_id}/revisions",
        data={"payload": '{"order_id": 9}', "reason": "nine it was"},
        headers={"if-match": '"0"', "authorization": f"Bearer {house.served.token}"},
    )
    assert theirs.ok, await theirs.text()
    async with answers_late(page, "**/revisions") as asked:
        await dialog.get_by_role("button", name="Save as a new revision").click()
        await asked.wait()
        await editor.get_by_text("8", exact=True).dblclick()
        await page.keyboard.type("88")
    told = dialog.get_by_role("alert").filter(has_text="Somebody else was quicker: revision 1")
    await expect(told).to_contain_text("nine it was")
    await page.keyboard.type("8")
    await expect(editor).to_contain_text('"order_id": 888')
    await expect(dialog.locator(".cm-deletedChunk")).to_contain_text("9")
    await expect(dialog.get_by_role("button", name="Save as a new revision")).to_be_disabled()
    await told.get_by_role("button", name="Go on with mine, on top of theirs").click()
    await dialog.get_by_role("button", name="Save as a new revision").click()
    await expect(page.get_by_text("Saved as revision 2")).to_be_visible()
    async with desk.opened() as (store, _transport):
        letter = await store.get(letter_id)
    assert letter is not None
    assert [revision.message.payload for revision in letter.revisions][1:] == [
        b'{"order_id": 9}',
        b'{"order_id": 888}',
    ]
