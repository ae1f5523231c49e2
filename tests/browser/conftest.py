"""A browser and a real server: `redrive serve` over SQLite or PostgreSQL, and Debian's chromium on its pages.

Whatever a test does, its pages must break no rule of their content security policy and raise no error.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

from support.desk import Desk
from support.serving import Served, serving

PASSWORD = "correct horse battery"  # noqa: S105  of people who do not exist
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WITHIN = 20_000.0
"""Milliseconds that a page has for what is expected of it: the machine may be busy."""
expect.set_options(timeout=_WITHIN)
ON_SQLITE = pytest.mark.parametrize("desk", ["sqlite"], indirect=True)
"""For what the pages do whichever store is behind the server."""
_REPORTED = """
addEventListener('securitypolicyviolation', (event) => {
  console.error(`policy broken: ${event.violatedDirective} by ${event.sourceFile ?? ''} ${event.sample ?? ''}`);
});
"""


@dataclass
class House:
    """A server with people who can sign in: ann may do everything, vic may only look, abe approves."""

    desk: Desk
    served: Served

    @property
    def url(self) -> str:
        return self.served.url


@dataclass
class Watched:
    """What the pages of a test have said that they should not."""

    said: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Parts of what a test is about, such as an answer of 403."""

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" or "policy broken" in message.text:
            self.said.append(message.text)

    @property
    def unexpected(self) -> list[str]:
        return [each for each in self.said if not any(part in each for part in self.expected)]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where it is. Missing, it is a skip at home and a failure in CI."""
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None and os.environ.get("CI"):
        pytest.fail("there is no chromium here: `make chromium` installs it")
    if found is None:
        pytest.skip("there is no chromium here: `make chromium` installs it")
    return found


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """Its store is empty; a test fills it before it asks for `house`."""
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    return Desk(tmp_path, store_url=url)


def add_people(desk: Desk) -> None:
    for name, grants in {"ann": ["admin"], "vic": ["viewer"], "abe": ["approver", "operator"]}.items():
        given = [part for grant in grants for part in ("--grant", grant)]
        made = desk.redrive("users", "add", name, *given, "--password-stdin", stdin=f"{PASSWORD}\n")
        assert made.code == 0, made.err


@pytest.fixture
def house(desk: Desk) -> Iterator[House]:
    add_people(desk)
    with serving(desk) as served:
        yield House(desk, served)


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # Without its sandbox where root runs it, as in a container; the pages are ours.
        options: dict[str, Any] = {"executable_path": chromium, "args": ["--no-sandbox"]}
        opened = await playwright.chromium.launch(**options)
        yield opened
        await opened.close()


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    found = Watched()
    yield found
    assert found.unexpected == []


class Visitor:
    """Somebody in front of a browser of their own."""

    def __init__(self, browser: Browser, house: House, watched: Watched) -> None:
        self._browser, self._house, self._watched = browser, house, watched
        self._contexts: list[BrowserContext] = []

    async def open(self, path: str = "/", *, user: str | None = "ann", **options: Any) -> Page:
        """A page at that address, signed in as that user (None: not signed in)."""
        given = {"locale": "en-GB", "viewport": {"width": 1280, "height": 900}, "timezone_id": "UTC", **options}
        context = await self._browser.new_context(base_url=self._house.url, **given)
        context.set_default_timeout(_WITHIN)
        await context.add_init_script(_REPORTED)
        self._contexts.append(context)
        if user is not None:
            signed_in = await context.request.post(
                "/api/v1/session",
                data={"user": user, "password": PASSWORD},
                headers={"sec-fetch-site": "same-origin"},
            )
            assert signed_in.status == 204, await signed_in.text()
        page = await context.new_page()
        self._watched.watch(page)
        await page.goto(path)
        return page

    async def leave(self) -> None:
        for context in self._contexts:
            await context.close()


@pytest.fixture
async def visitor(browser: Browser, house: House, watched: Watched) -> AsyncIterator[Visitor]:
    found = Visitor(browser, house, watched)
    yield found
    await found.leave()
