"""TH4: letters of any size and shape are shown: exactly, some of it at a time, and the page goes on answering."""

from __future__ import annotations

import random

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from browser.conftest import ON_SQLITE, Visitor
from redrive.message import Headers
from support.dead_letters import dead, foreign
from support.desk import Desk
from support.hostile import DEEP, MEGABYTE

_MOST_NODES = 12_000
_BIG = 2**53 + 1
_LONG = int("1234567890" * 40)
_BINARY = random.Random(7).randbytes(4096)  # noqa: S311  the same bytes each time, no secret
_BODIES: dict[str, bytes] = {
    "large": b'{"first": 1, "text": "' + b"x" * (16 * MEGABYTE - 60) + b'", "last": "the end"}',
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"7" + b"}" * DEEP,
    "numbers": f'{{"big": {_BIG}, "long": -{_LONG}, "tiny": 1e-400, "exact": 0.10000000000000000001}}'.encode(),
    "wide": b'{"items": [' + b",".join(str(each).encode() for each in range(100_000)) + b"]}",
    "invalid": b'{"name": "caf\xe9 \xff\xfe"}',
    "binary": _BINARY,
    "nothing": b"",
}
_HEADERS: Headers = tuple((f"x-header-{number}", number) for number in range(10_000))


def _filled(desk: Desk) -> dict[str, str]:
    entries = [dead(foreign(body), error=ValueError(name)) for name, body in _BODIES.items()]
    many = dead(foreign(b"{}", headers=(*_HEADERS, ("x-big", 2**64 + 1), ("x-last", "the end"))))
    return dict(zip((*_BODIES, "headers"), desk.record(*entries, many), strict=True))


async def _answers(page: Page) -> None:
    """It takes a click and does what is asked; and is not full of what nobody can see."""
    for tab in ("Failure", "Story", "Headers", "Payload"):
        await page.get_by_role("tab", name=tab).click()
        await expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        await expect(page.get_by_role("tabpanel")).not_to_be_empty()
        assert await page.evaluate("() => document.querySelectorAll('*').length") < _MOST_NODES


async def _view(page: Page, name: str) -> None:
    await page.get_by_role("radiogroup", name="Payload").get_by_text(name, exact=True).click()


async def _reveal(page: Page) -> None:
    await page.get_by_role("button", name="Reveal", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox", name="Why").fill("to see all of it")
    await dialog.get_by_role("button", name="Reveal this letter").click()


@pytest.fixture(scope="module")
def letters(desk: Desk) -> dict[str, str]:
    """Recorded before the server starts."""
    return _filled(desk)


@pytest_asyncio.fixture(loop_scope="module")
async def page(letters: dict[str, str], visitor: Visitor) -> Page:  # noqa: ARG001  the server finds them
    return await visitor.open("/letters")


@ON_SQLITE
async def test_letters_of_any_size_and_shape_are_shown_exactly(letters: dict[str, str], page: Page) -> None:
    for name, letter_id in letters.items():
        await page.goto(f"/letters/{letter_id}#tab=payload")
        await expect(page.get_by_role("heading", level=1)).to_have_text("ValueError")
        await _answers(page)
        await _LOOKS[name](page)
        await _answers(page)


async def _many_headers(page: Page) -> None:
    panel = page.get_by_role("tabpanel")
    await page.get_by_role("tab", name="Headers").click()
    await expect(panel).to_contain_text("of 10,002")
    await panel.get_by_role("textbox", name="Find in headers").fill("x-header-9999")
    await expect(panel.get_by_role("row")).to_have_count(2)
    await expect(panel).to_contain_text("9999")
    await panel.get_by_role("textbox", name="Find in headers").fill("x-big")
    await expect(panel).to_contain_text(str(2**64 + 1))


async def _large(page: Page) -> None:
    panel = page.get_by_role("tabpanel")
    await expect(panel).to_contain_text("[masked: longer than 1 MiB]")
    await _reveal(page)
    await expect(panel).to_contain_text("The first 2,048 KiB of 16,384 KiB.")
    await panel.get_by_role("button", name="Load all 16,384 KiB").click()
    await expect(page.get_by_role("tree")).to_contain_text("the end")
    await _view(page, "Raw")
    await expect(panel).to_contain_text('{"first": 1, "text": "xxx')
    await panel.get_by_role("button", name="Later").click()
    await expect(panel).to_contain_text("Characters 32,769 to 65,536 of 16,777,")
    await _view(page, "Bytes")
    await expect(panel).to_contain_text("00000000  7b 22 66 69 72 73 74 22")


async def _deep(page: Page) -> None:
    tree = page.get_by_role("tree")
    await expect(tree).to_be_visible()
    lines = await tree.get_by_role("treeitem").count()
    await tree.get_by_role("button", name="Expand").last.click()
    await expect(tree.get_by_role("treeitem")).to_have_count(lines + 1)


async def _numbers(page: Page) -> None:
    panel = page.get_by_role("tabpanel")
    for view in ("Tree", "Raw"):
        await _view(page, view)
        for written in (str(_BIG), f"-{_LONG}", "1e-400", "0.10000000000000000001"):
            await expect(panel).to_contain_text(written)


async def _wide(page: Page) -> None:
    tree = page.get_by_role("tree")
    await expect(tree).to_contain_text("100,000 items")
    await tree.get_by_role("button", name="Expand").last.click()
    await tree.get_by_role("button", name="Show 100 more").click()
    await expect(tree).to_contain_text("199")


async def _invalid(page: Page) -> None:
    await _reveal(page)
    await expect(page.get_by_role("tabpanel")).to_contain_text("63 61 66 e9 20 ff")


async def _binary(page: Page) -> None:
    await _reveal(page)
    await expect(page.get_by_role("tabpanel")).to_contain_text(_BINARY[:8].hex(" "))


async def _nothing(page: Page) -> None:
    await expect(page.get_by_role("tabpanel")).to_contain_text("0 bytes")


_LOOKS = {
    "large": _large,
    "deep lists": _deep,
    "deep objects": _deep,
    "numbers": _numbers,
    "wide": _wide,
    "invalid": _invalid,
    "binary": _binary,
    "nothing": _nothing,
    "headers": _many_headers,
}
