"""A redrive that a second person has to approve, each in a browser of their own."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import ON_SQLITE, Visitor
from support.dead_letters import an_order, dead
from support.desk import Desk

pytestmark = ON_SQLITE


@pytest.fixture(scope="module")
def two_orders(desk: Desk) -> list[str]:
    """Before the server starts, which reads the rule once."""
    (desk.folder / "redrive.toml").write_text("[approval]\nmore_than = 1\n")
    return desk.record(dead(an_order(1)), dead(an_order(2)))


async def test_somebody_else_approves_and_it_runs(two_orders: list[str], desk: Desk, visitor: Visitor) -> None:
    ann = await visitor.open("/letters")
    await ann.get_by_role("checkbox", name="Select all that are listed").check()
    await ann.get_by_role("button", name="Redrive", exact=True).click()
    dialog = ann.get_by_role("dialog", name="Redrive letters")
    await expect(dialog.get_by_role("note")).to_contain_text("Somebody else has to approve this")
    await dialog.get_by_role("textbox", name="Why").fill("the database is back")
    await dialog.get_by_role("button", name="Ask for approval of 2 letters").click()
    await expect(ann.get_by_text("Awaiting approval").first).to_be_visible()
    mine = ann.get_by_role("group", name="You asked for this run: somebody else has to approve it")
    await expect(mine.get_by_role("button", name="Approve")).to_be_disabled()

    abe = await visitor.open("/runs", user="abe")
    waiting = abe.get_by_role("region", name="1 run waits for your approval")
    await expect(waiting).to_contain_text("the database is back")
    await waiting.get_by_role("link", name="Look at it").click()
    await abe.get_by_role("button", name="Approve", exact=True).click()
    question = abe.get_by_role("dialog", name="Approve this run?")
    await question.get_by_role("button", name="Approve 2 letters").click()
    await expect(abe.get_by_text("2 of 2 sent")).to_be_visible()
    await expect(abe.get_by_role("region", name="History")).to_contain_text("Approved")

    await expect(ann.get_by_text("2 of 2 sent")).to_be_visible()
    async with desk.opened() as (_store, transport):
        depths = await transport.depths()
    assert depths["orders"].ready == len(two_orders)
