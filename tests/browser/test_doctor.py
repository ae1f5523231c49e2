"""The doctor's page: nothing is looked at until somebody says so, and then every place is told."""

from __future__ import annotations

from playwright.async_api import expect

from browser.conftest import Visitor


async def test_an_administrator_looks_and_is_told_of_every_place(visitor: Visitor) -> None:
    page = await visitor.open("/")
    await page.get_by_role("navigation").get_by_role("link", name="Doctor").click()
    await expect(page.get_by_role("heading", name="Doctor", level=1)).to_be_visible()
    await expect(page.get_by_text("Nobody has looked since the server was started")).to_be_visible()
    await page.get_by_role("button", name="Look now").click()
    for place in ("Broker", "Store", "Disks", "Settings"):
        await expect(page.get_by_role("heading", name=place, level=2)).to_be_visible()
    spool = page.get_by_role("row").filter(has_text="can be written, and is empty")
    await expect(spool).to_contain_text("Well")
    await page.reload()
    await expect(page.get_by_role("heading", name="Disks", level=2)).to_be_visible()  # of the same look


async def test_who_does_not_administer_is_told_why_there_is_nothing(visitor: Visitor) -> None:
    page = await visitor.open("/doctor", user="vic")
    await expect(page.get_by_text("The doctor is for administrators")).to_be_visible()
    await expect(page.get_by_role("button", name="Look now")).to_have_count(0)
