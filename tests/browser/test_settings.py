"""Tokens made and revoked in the settings, seen in the ledger; and the queues."""

from __future__ import annotations

from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, Visitor
from support.dead_letters import dead
from support.desk import Desk

pytestmark = ON_SQLITE


async def asked_with(page: Page, token: str) -> int:
    """The status of an answer to a program that has this token and nothing else."""
    browser = page.context.browser
    assert browser is not None
    program = await browser.new_context(base_url=page.url)
    answer = await program.request.get("/api/v1/dlq", headers={"authorization": f"Bearer {token}"})
    await program.close()
    return answer.status


async def make_token(page: Page, name: str) -> str:
    await page.get_by_role("button", name="New token").click()
    form = page.get_by_role("dialog", name="New API token")
    await form.get_by_role("textbox", name="Name").fill(name)
    await form.get_by_role("button", name="Make the token").click()
    made = page.get_by_role("dialog", name=f"The token {name} is made")
    token = await made.get_by_role("group", name="The token").locator("code").inner_text()
    await made.get_by_role("button", name="I have copied it").click()
    await expect(page.get_by_role("button", name="New token")).to_be_focused()
    return token


async def test_a_token_is_shown_once_works_and_is_revoked(visitor: Visitor) -> None:
    page = await visitor.open("/settings")
    await page.get_by_role("tab", name="API tokens").click()
    token = await make_token(page, "nightly")
    assert token.startswith("rdv_")
    assert token.rpartition("_")[2] not in await page.content()
    assert await asked_with(page, token) == 200
    await page.get_by_role("button", name="Revoke nightly").click()
    question = page.get_by_role("dialog", name="Revoke the token nightly?")
    await question.get_by_role("textbox", name="Why").fill("the script is gone")
    await question.get_by_role("button", name="Revoke 1 token").click()
    await expect(page.get_by_text("The token nightly is revoked.")).to_be_visible()
    await expect(page.get_by_role("button", name="Revoke nightly")).to_have_count(0)
    assert await asked_with(page, token) == 401

    await page.get_by_role("navigation").get_by_role("link", name="Audit").click()
    await expect(page.get_by_role("heading", name="Audit", level=1)).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="token made").filter(has_text="nightly")).to_contain_text(
        "ann"
    )
    revoked = page.get_by_role("row").filter(has_text="token revoked")
    await expect(revoked).to_contain_text("the script is gone")


async def test_denials_are_in_the_ledger_and_the_ledger_is_not_for_everybody(visitor: Visitor) -> None:
    vic = await visitor.open("/audit", user="vic")
    await expect(vic.get_by_text("The ledger is not shown to you")).to_be_visible()
    denied = await vic.request.post(
        "/api/v1/tokens", data={"name": "mine", "grants": []}, headers={"sec-fetch-site": "same-origin"}
    )
    assert denied.status == 403
    ann = await visitor.open("/audit")
    row = ann.get_by_role("row").filter(has_text="vic").filter(has_text="Denied")
    await expect(row.first).to_contain_text("access:manage")


async def test_queues_are_told_with_their_dead_letters(desk: Desk, visitor: Visitor) -> None:
    async with desk.opened() as (store, _transport):
        for _ in range(2):
            await store.record(dead())
    page = await visitor.open("/queues")
    row = page.get_by_role("row").filter(has_text="orders")
    await row.get_by_role("link", name="2").click()
    await expect(page.get_by_role("table", name="Letters").locator("tbody").get_by_role("row")).to_have_count(2)
