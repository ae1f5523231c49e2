"""The console in chromium, over the API on PostgreSQL at a million letters: how long until a page can be used.

From the moment somebody goes there until its heading and its first rows or figures are on the screen. `cold`: a
browser that was never there loads, compiles and asks for everything. `warm`: the same browser goes there again.
`by a link`: from another page of the console, which is open already. Aim: under a second each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright

from bench import naive_schema
from bench.api import a_token, serving
from bench.causes import QUEUES
from bench.measuring import Benchmark, Limit
from bench.seeding import SeedClock, Seeded, seeded
from bench.server import running
from redrive.access import Grant, Role, local
from redrive.actions import Actions
from redrive.clock import SystemClock
from redrive.errors import Refused
from redrive.letter_query import LetterQuery
from redrive.stores.postgres import PostgresStore
from redrive.transports import open_transport

COLD, WARM, LINK = "cold", "warm", "by a link"
UNDER = 1000.0
RUNS = 5
_USER, _PASSWORD = "bench", "a bench is for sitting"
_ELSEWHERE = "/nowhere"
# Asked before every frame, by the page itself: what is measured is what somebody sees, not how fast it is asked.
_SHOWN = """
const shown = (selectors) => new Promise((done) => {
  const look = () => selectors.every((each) => document.querySelector(each)?.textContent.trim())
    ? done(performance.now()) : requestAnimationFrame(look);
  look();
});
"""
_FROM_ITS_START = f"async (selectors) => {{ {_SHOWN} return shown(selectors); }}"
_BY_A_LINK = f"""async ([path, selectors]) => {{ {_SHOWN}
  const begun = performance.now();
  history.pushState(null, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
  return await shown(selectors) - begun;
}}"""


@dataclass(frozen=True)
class Case:
    path: str
    shows: tuple[str, ...]
    """Selectors of what has to be there, with text in it."""


def main(*options: str) -> None:
    parser = argparse.ArgumentParser(prog="bench console", description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the server's data here for the next run")
    given = parser.parse_args(options)
    about = f"the console in chromium over {given.letters:,} letters on PostgreSQL"
    benchmark = Benchmark("console", "ms", ("playwright", "fastapi", "uvicorn", "asyncpg"), about)
    with running(given.keep) as server, asyncio.Runner() as runner:
        at = seeded(server, given.letters)
        benchmark.facts = server.facts() | {
            "load before": f"{os.getloadavg()[1]:.1f} in 5 minutes, on {os.cpu_count()} cores"
        }
        server.warm()
        cases, token = runner.run(_prepared(at))
        with serving(at, token) as api:
            _measure(benchmark, cases, runner, runner.run(Visits.begin(api.origin)))
        benchmark.facts["load after"] = f"{os.getloadavg()[1]:.1f} in 5 minutes"
    benchmark.save()


async def _prepared(at: Seeded) -> tuple[dict[str, Case], str]:
    """The pages to visit, and a token; somebody who can sign in is there."""
    store = PostgresStore(at.url, clock=SeedClock(at.now), view=naive_schema.VIEW)
    transport = open_transport("embedded:///:memory:")
    desk = Actions(store=store, transport=transport, clock=SystemClock(), who=local("bench"))
    with contextlib.suppress(Refused):  # there since the last run
        await desk.add_user(_USER, _PASSWORD, [Grant(Role.VIEWER)])
    letter = (await store.find(LetterQuery(limit=1)))[0]
    group, token = (await store.groups())[0], await a_token(store)
    await store.close()
    rows = "main tbody tr"
    chosen = quote(f"queue:{QUEUES[0]} status:PENDING age:>2d")
    return {
        "overview": Case("/", ("h1", '[aria-label="At a glance"]', "main svg", rows)),
        "groups": Case("/groups", ("h1", rows)),
        "one group": Case(f"/groups/{group.id}", ("h1", rows)),
        "letters": Case("/letters", ("h1", rows)),
        "letters by filter": Case(f"/letters#q={chosen}", ("h1", rows)),
        "one letter": Case(f"/letters/{letter.id}", ("h1", "main aside", '[role="tabpanel"]')),
    }, token


def _measure(benchmark: Benchmark, cases: dict[str, Case], runner: asyncio.Runner, visits: Visits) -> None:
    for name, case in cases.items():
        ways = {COLD: visits.cold, WARM: visits.warm, LINK: visits.by_a_link}
        systems = {way: partial(_visit, runner, visit, case) for way, visit in ways.items()}
        benchmark.measure_calls(name, systems, runs=RUNS, most=1)
        benchmark.keep_under(Limit(name, COLD, UNDER))
    runner.run(visits.end())


def _visit(runner: asyncio.Runner, visit: Callable[[Case], Awaitable[float]], case: Case) -> float:
    async def made() -> float:
        return await visit(case)

    return runner.run(made())


class Visits:
    """Of somebody who is signed in. Milliseconds, by the page's own clock."""

    def __init__(self, playwright: Playwright, browser: Browser, origin: str) -> None:
        self._playwright, self._browser, self._origin = playwright, browser, origin
        self._context: BrowserContext | None = None

    @classmethod
    async def begin(cls, origin: str) -> Visits:
        found = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
        if found is None:
            sys.exit("there is no chromium here: `make chromium` installs it")
        playwright = await async_playwright().start()
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        return cls(playwright, browser, origin)

    async def end(self) -> None:
        await self._browser.close()
        await self._playwright.stop()

    async def cold(self, case: Case) -> float:
        context = await self._signed_in()
        took = await self._from_its_start(context, case)
        if self._context is not None:
            await self._context.close()
        self._context = context
        return took

    async def warm(self, case: Case) -> float:
        assert self._context is not None, "somebody was there before"
        return await self._from_its_start(self._context, case)

    async def by_a_link(self, case: Case) -> float:
        assert self._context is not None, "somebody was there before"
        page = await self._context.new_page()
        await page.goto(_ELSEWHERE)
        await page.wait_for_selector("h1")
        took: float = await page.evaluate(_BY_A_LINK, [case.path, case.shows])
        await page.close()
        return took

    async def _from_its_start(self, context: BrowserContext, case: Case) -> float:
        page = await context.new_page()
        await page.goto(case.path, wait_until="commit")
        took: float = await page.evaluate(_FROM_ITS_START, case.shows)
        await page.close()
        return took

    async def _signed_in(self) -> BrowserContext:
        context = await self._browser.new_context(base_url=self._origin, locale="en-GB")
        asked = {"user": _USER, "password": _PASSWORD}
        own = {"sec-fetch-site": "same-origin"}
        answer = await context.request.post("/api/v1/session", data=asked, headers=own)
        assert answer.status == 204, await answer.text()
        return context
