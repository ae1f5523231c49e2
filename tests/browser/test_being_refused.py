"""What somebody may not do is shown disabled with the reason; a request all the same is refused, and told."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, House, Visitor, Watched
from support.dead_letters import dead
from support.desk import Desk

pytestmark = ON_SQLITE
A_WHILE = 12_000
"""Milliseconds within which each page asks the server for what is new."""
NEW_PASSWORD = "battery horse correct"  # noqa: S105  of somebody who does not exist


@pytest.fixture(scope="module")
def letter_id(desk: Desk) -> str:
    [found] = desk.record(dead())
    return found


async def command(house: House, *arguments: str, stdin: str = "") -> None:
    ended = await asyncio.to_thread(house.desk.redrive, *arguments, stdin=stdin)
    assert ended.code == 0, ended.err


async def expect_disabled(page: Page, button: str, permission: str) -> None:
    reason = page.get_by_role("group", name=f"You lack the permission {permission} for the queue orders")
    await expect(reason.get_by_role("button", name=button, exact=True)).to_be_disabled()


async def test_whoever_may_only_look_sees_why(letter_id: str, visitor: Visitor, watched: Watched) -> None:
    watched.expected.append("403")
    page = await visitor.open(f"/letters/{letter_id}", user="vic")
    await expect_disabled(page, "Redrive", "runs:make")
    await expect_disabled(page, "Edit", "letters:edit")
    await page.get_by_role("group", name="You lack the permission runs:make").hover()
    await expect(page.get_by_role("tooltip")).to_have_text(
        "You lack the permission runs:make for the queue orders"
    )
    await page.keyboard.press("r")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    forced = await page.evaluate(
        """async (id) => {
            const headers = { 'content-type': 'application/json' };
            const answer = await fetch(`/api/v1/dlq/${id}/retry`, { method: 'POST', headers, body: '{}' });
            return [answer.status, (await answer.json()).detail];
        }""",
        letter_id,
    )
    assert forced[0] == 403
    assert "runs:make" in forced[1]


async def test_a_permission_that_was_taken_away_meanwhile_is_named(
    letter_id: str, house: House, visitor: Visitor, watched: Watched
) -> None:
    watched.expected.append("403")
    page = await visitor.open(f"/letters/{letter_id}", user="abe")
    await page.get_by_role("button", name="Redrive", exact=True).click()
    dialog = page.get_by_role("dialog", name="Redrive letters")
    await dialog.get_by_role("textbox", name="Why").fill("the customer is back")
    await expect(dialog.get_by_role("button", name="Redrive 1 letter")).to_be_enabled()
    await command(house, "users", "grants", "abe", "--grant", "viewer")
    await dialog.get_by_role("button", name="Redrive 1 letter").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("runs:make")
    await expect(dialog.get_by_role("textbox", name="Why")).to_have_value("the customer is back")


async def test_a_session_that_was_ended_elsewhere_begins_again_where_it_was(
    letter_id: str, house: House, visitor: Visitor, watched: Watched
) -> None:
    watched.expected.append("401")
    page = await visitor.open(f"/letters#q=id:{letter_id}", user="eve", own_clock=True)
    await expect(page.get_by_role("link", name="ValueError")).to_be_visible()
    where = page.url
    await command(house, "users", "password", "eve", "--password-stdin", stdin=f"{NEW_PASSWORD}\n")
    await page.clock.fast_forward(A_WHILE)
    await page.get_by_role("textbox", name="User").fill("eve")
    await page.get_by_role("textbox", name="Password").fill(NEW_PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_role("link", name="ValueError")).to_be_visible()
    assert page.url == where
