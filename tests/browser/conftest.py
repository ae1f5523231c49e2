"""A browser and a real server: `redrive serve` over SQLite or PostgreSQL, and Debian's chromium on its pages.

Whatever a test does, its pages must break no rule of their content security policy and raise no error.

The tests of a module share a store, a server and a browser, which take longer to start than most tests: each looks
at what it has made itself.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from argon2 import PasswordHasher
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

from redrive.access import Grant, Role
from redrive.accounts import KeptUser, User
from redrive.api.keeper import PLAIN_COOKIE
from redrive.clock import SystemClock
from redrive.dead_letter import Actor
from redrive.identity.sessions import Sessions
from redrive.stores import open_store
from support.desk import Desk
from support.serving import Served, serving

PASSWORD = "correct horse battery"  # noqa: S105  of people who do not exist
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WITHIN = 20_000.0
"""Milliseconds that a page has for what is expected of it: the machine may be busy."""
expect.set_options(timeout=_WITHIN)
PEOPLE = {"ann": [Role.ADMIN], "vic": [Role.VIEWER], "abe": [Role.APPROVER, Role.OPERATOR], "eve": [Role.OPERATOR]}
_HERE = Path(__file__).parent
ON_SQLITE = pytest.mark.parametrize("desk", ["sqlite"], indirect=True)
"""For what the pages do whichever store is behind the server."""
_REPORTED = """
addEventListener('securitypolicyviolation', (event) => {
  console.error(`policy broken: ${event.violatedDirective} by ${event.sourceFile ?? ''} ${event.sample ?? ''}`);
});
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module run in one event loop, for they share a browser."""
    for item in items:
        if item.path.is_relative_to(_HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@dataclass
class House:
    """A server with people who can sign in: ann does everything, vic only looks, abe approves, eve redrives."""

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


def desk_over(store: str, folder: Path, request: pytest.FixtureRequest) -> Desk:
    """With an empty store of that kind."""
    url = None if store == "sqlite" else request.getfixturevalue("postgres").emptied_store()
    return Desk(folder, store_url=url)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Its store is empty when the first test of the module asks for it."""
    return desk_over(request.param, tmp_path_factory.mktemp("desk"), request)


@cache
def _password_hash() -> str:
    """Made once: it takes its time, on purpose."""
    return PasswordHasher().hash(PASSWORD)


def a_user(name: str, *roles: Role) -> KeptUser:
    """With the password of all of them."""
    grants = tuple(map(Grant, roles))
    return KeptUser(
        User(name=name, grants=grants, created_at=datetime.now(UTC), created_by="test"), _password_hash()
    )


def add_people(desk: Desk) -> None:
    async def work() -> None:
        store = open_store(desk.store_url)
        for name, roles in PEOPLE.items():
            await store.add_user(a_user(name, *roles), by=Actor("test"))
        await store.close()

    asyncio.run(work())


@contextmanager
def opened_house(desk: Desk) -> Iterator[House]:
    add_people(desk)
    with serving(desk) as served:
        yield House(desk, served)


@pytest.fixture(scope="module")
def house(desk: Desk) -> Iterator[House]:
    with opened_house(desk) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # Without its sandbox where root runs it, as in a container; the pages are ours.
        options: dict[str, Any] = {"executable_path": chromium, "args": ["--no-sandbox"]}
        opened = await playwright.chromium.launch(**options)
        yield opened
        await opened.close()


@pytest.fixture
def watched() -> Iterator[Watched]:
    found = Watched()
    yield found
    assert found.unexpected == []


class Visitor:
    """Somebody in front of a browser of their own."""

    def __init__(self, browser: Browser, house: House, watched: Watched) -> None:
        self._browser, self._house, self._watched, self._url = browser, house, watched, house.url
        self._contexts: list[BrowserContext] = []

    async def open(
        self, path: str = "/", *, user: str | None = "ann", own_clock: bool = False, **options: Any
    ) -> Page:
        """A page at that address, signed in as that user (None: not signed in). A clock of its own (`page.clock`)
        can be put forward where the page would wait until it asks the server again.
        """
        given = {"locale": "en-GB", "viewport": {"width": 1280, "height": 900}, "timezone_id": "UTC", **options}
        context = await self._browser.new_context(base_url=self._url, **given)
        context.set_default_timeout(_WITHIN)
        await context.add_init_script(_REPORTED)
        if own_clock:
            await context.clock.install()
        self._contexts.append(context)
        if user is not None:
            await context.add_cookies(
                [{"name": PLAIN_COOKIE, "value": await self._session(user), "url": self._url}]
            )
        page = await context.new_page()
        self._watched.watch(page)
        await page.goto(path)
        return page

    async def _session(self, user: str) -> str:
        """The secret of a new one, as signing in makes it."""
        store = open_store(self._house.desk.store_url)
        kept = await store.user(user)
        assert kept is not None
        secret = await Sessions(store, SystemClock()).begin(kept.user)
        await store.close()
        assert secret is not None
        return secret

    async def leave(self) -> None:
        for context in self._contexts:
            await context.close()


@pytest_asyncio.fixture(loop_scope="module")
async def visitor(browser: Browser, house: House, watched: Watched) -> AsyncIterator[Visitor]:
    found = Visitor(browser, house, watched)
    yield found
    await found.leave()
