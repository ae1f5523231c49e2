"""`make screenshots`: pictures of every page of the console, light and dark, into docs/images.

A store is filled with the incident that `tools.incident` tells, `redrive serve` shows it, chromium looks at it.
ImageMagick makes the pictures small, if it is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from redrive import wiring
from redrive.configuration import load
from redrive.privacy_wiring import maskers_of, privacy_of
from redrive.stores import open_store
from redrive.transports import open_transport
from tools.incident import APPROVED_ABOVE, Incident, StoryClock

IMAGES = Path(__file__).parent.parent / "docs" / "images"
_PASSWORD = "correct horse battery"  # noqa: S105  of people who do not exist
_WIDE, _NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
_SETTINGS = f"""\
[app]
environment = "production"

[approval]
more_than = {APPROVED_ABOVE}
"""
_WAIT = 60.0
Prepare = Callable[[Page], Awaitable[None]]


@dataclass(frozen=True)
class Shot:
    name: str
    path: str
    shows: str
    """A text that is there once the page is."""
    prepare: Prepare | None = None
    narrow: bool = False
    user: str | None = "ann"


async def _redrive_dialog(page: Page) -> None:
    await page.get_by_role("button", name=re.compile("^(Redrive|Ask for approval)")).first.click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("What will be sent").wait_for()
    await dialog.get_by_role("checkbox", name="Canary: first a few").check()
    await dialog.get_by_role("textbox", name="Why").fill("the acquirer is back")


async def _edit_dialog(page: Page) -> None:
    await page.get_by_role("button", name="Edit", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox", name="Why").fill("the customer is known")
    await dialog.get_by_role("button", name="Show the real text and edit it").click()
    editor = dialog.get_by_role("textbox", name="Payload")
    await editor.wait_for()
    await editor.get_by_text('"DE"').first.click()
    await page.keyboard.press("Home")
    await page.keyboard.type('  "customer_id": 771,\n')


def _shots(found: dict[str, str]) -> list[Shot]:
    letter, edited = f"/letters/{found['letter']}", f"/letters/{found['edited']}"
    return [
        Shot("overview", "/", "What broke", narrow=True),
        Shot("alerts", "/alerts", "New failure", narrow=True),
        Shot("groups", "/groups", "GatewayTimeout"),
        Shot("group", f"/groups/{found['group']}", "What they have in common", narrow=True),
        Shot("letters", "/letters#q=queue%3Apayments", "GatewayTimeout", narrow=True),
        Shot("letter", letter, "Where it came from", narrow=True),
        Shot("letter-payload", f"{letter}#tab=payload", "acquirer"),
        Shot("letter-story", f"{letter}#tab=story", "Dead-lettered"),
        Shot("redrive", f"/groups/{found['group']}", "What they have in common", _redrive_dialog, narrow=True),
        Shot("edit", edited, "Where it came from", _edit_dialog),
        Shot("runs", "/runs", "NordPost", user="abe"),
        Shot("run", f"/runs/{found['under way']}", "Waiting for outcomes", narrow=True),
        Shot("run-stopped", f"/runs/{found['stopped']}", "Too many came back"),
        Shot("run-approval", f"/runs/{found['waiting']}", "Waits for an approval", user="abe"),
        Shot("queues", "/queues", "payments"),
        Shot("audit", "/audit", "ann"),
        Shot("settings", "/settings", "ann"),
        Shot("sign-in", "/", "Password", user=None),
    ]


async def _fill(folder: Path) -> None:
    settings, clock = load().settings, StoryClock()
    url = f"sqlite:///{folder}/redrive.db"
    given: dict[str, Any] = {"ledger_key": wiring.ledger_key(settings), "privacy": privacy_of(settings)}
    store = open_store(url, clock=clock, **given)
    store.belong_to(settings.app.environment)
    transport = open_transport(f"embedded:///{folder}/redrive-broker.db")
    await Incident(store, transport, clock, maskers_of(settings), datetime.now(UTC)).tell()
    await transport.close()
    await store.close()


def _redrive(*arguments: str, given: str = "") -> None:
    command = [str(Path(sys.executable).parent / "redrive"), *arguments]
    subprocess.run(command, check=True, input=given, text=True, capture_output=True)


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """Without engine: what is under way stays under way."""
    command = [str(Path(sys.executable).parent / "redrive"), "serve", "--port", "0", "--no-engine", "--no-upkeep"]
    said = folder / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, stderr=file)
    try:
        yield _url(said)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _url(said: Path) -> str:
    until = time.monotonic() + _WAIT
    while time.monotonic() < until:
        if found := re.search(r"(http://\S+)/api/v1", said.read_text()):
            return found[1]
        time.sleep(0.05)
    sys.exit(said.read_text())


@contextlib.asynccontextmanager
async def _looking(browser: Browser, url: str, user: str | None, **how: Any) -> AsyncIterator[BrowserContext]:
    given = {"locale": "en-GB", "timezone_id": "Europe/Lisbon", "reduced_motion": "reduce", **how}
    context = await browser.new_context(base_url=url, **given)
    if user is not None:
        asked = {"user": user, "password": _PASSWORD}
        signed = await context.request.post(
            "/api/v1/session", data=asked, headers={"sec-fetch-site": "same-origin"}
        )
        assert signed.status == 204, await signed.text()
    yield context
    await context.close()


async def _ids(context: BrowserContext) -> dict[str, str]:
    """What the pictures are of."""

    async def first(path: str, by: Callable[[dict[str, Any]], bool]) -> str:
        items = (await (await context.request.get(f"/api/v1{path}")).json())["items"]
        return str(next(each for each in items if by(each))["id"])

    return {
        "group": await first("/groups", lambda each: "GatewayTimeout" in each["title"]),
        "letter": await first("/dlq?q=type:GatewayTimeout", lambda _: True),
        "edited": await first(
            "/dlq?q=type:NoCustomer%20data.country:DE", lambda each: each["status"] == "PENDING"
        ),
        "under way": await first("/runs", lambda each: each["status"] == "RUNNING"),
        "stopped": await first("/runs", lambda each: each["status"] == "STOPPED"),
        "waiting": await first("/runs", lambda each: each["status"] == "AWAITING_APPROVAL"),
    }


async def _take(context: BrowserContext, shot: Shot, file: Path) -> None:
    page = await context.new_page()
    await page.goto(shot.path)
    await page.get_by_text(shot.shows).first.wait_for()
    await page.wait_for_load_state("networkidle", timeout=5_000)
    if shot.prepare is not None:
        await shot.prepare(page)
        await page.wait_for_timeout(700)
    await page.mouse.move(0, 0)
    await page.screenshot(path=file, animations="disabled", caret="hide")
    await page.close()


async def _take_all(url: str, wanted: set[str]) -> None:
    executable = next(path for name in ("chromium", "chromium-browser") if (path := shutil.which(name)))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        async with _looking(browser, url, "ann") as context:
            shots = [each for each in _shots(await _ids(context)) if not wanted or each.name in wanted]
        for user in ("ann", "abe", None):
            for scheme in ("light", "dark"):
                for size, suffix in ((_WIDE, ""), (_NARROW, "-360")):
                    async with _looking(browser, url, user, color_scheme=scheme, viewport=size) as context:
                        for shot in shots:
                            if shot.user == user and (shot.narrow or size is _WIDE):
                                file = IMAGES / f"{shot.name}-{scheme}{suffix}.png"
                                await _take(context, shot, file)
                                _make_small(file)
        await browser.close()


def _make_small(file: Path) -> None:
    """256 colours are enough for a page. Without ImageMagick it stays as large as it is."""
    if convert := shutil.which("convert"):
        subprocess.run([convert, file, "+dither", "-strip", "-colors", "256", f"PNG8:{file}"], check=True)


def main(*wanted: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="redrive-pictures-") as name:
        folder = Path(name)
        os.chdir(folder)
        (folder / "redrive.toml").write_text(_SETTINGS)
        asyncio.run(_fill(folder))
        for user, role in {"ann": "admin", "abe": "approver", "ben": "operator"}.items():
            _redrive("users", "add", user, "--grant", role, "--password-stdin", given=f"{_PASSWORD}\n")
        with _serving(folder) as url:
            asyncio.run(_take_all(url, set(wanted)))
        os.chdir(IMAGES)


if __name__ == "__main__":
    main(*sys.argv[1:])
