"""The demonstration: the shop at work, from the first failure to the last message put back.

1. Orders arrive; some heal by retrying, some are set apart.
2. The coupon bug is fixed ("deployed"), and its letters are put back, all but one.
3. The worker confirms each: resolved, with proof. The one that is left, and the others, are for you.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from redrive import wiring
from redrive.access import local
from redrive.configuration import load
from redrive.dead_letter import FailureGroup, Status
from redrive.demo import shop
from redrive.demo.screen import QUEUES
from redrive.demo.traffic import orders
from redrive.letter_query import LetterQuery
from redrive.redriving import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from redrive.actions import Actions
    from redrive.demo.feed import Feed
    from redrive.settings import Settings
    from redrive.transports import QueueDepth, Transport

ROUNDS = 40
_FILES = ("broker.db", "letters.db", "journal.db")

SETTINGS = """\
# Written by `redrive demo`; made anew each time it starts.
[app]
environment = "demo"

[broker]
url = "embedded:///{folder}/broker.db"

[store]
url = "sqlite:///{folder}/letters.db"

[spool]
folder = "{folder}/spool"

[journal]
path = "{folder}/journal.db"

[log]
level = "warning"
"""


def prepare(folder: Path) -> Path:
    """An empty shop in this folder; its settings file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        for left in folder.glob(f"{name}*"):
            left.unlink()
    shop.fix_flag().unlink(missing_ok=True)
    settings = folder / "redrive.toml"
    settings.write_text(SETTINGS.format(folder=folder.as_posix()))
    return settings


class Story:
    """`paint` is called several times a second with everything there is to see."""

    def __init__(self, settings_file: Path, feed: Feed, paint: Callable[[Story], None]) -> None:
        self.settings: Settings = load(config=settings_file).settings
        self.feed = feed
        self.chapter = ""
        self.depths: Mapping[str, QueueDepth] = {}
        self.groups: list[FailureGroup] = []
        self.left: str = ""
        """The letter that is left for the reader to put back."""
        self.console: str = ""
        """The link to the console, which signs in once."""
        self._paint = paint

    def open_console(self, link: str) -> None:
        self.console = link
        self.feed.add(f"console  {link}")

    async def tell(self, *, once: bool) -> None:
        """To its end with `once`, else until it is cancelled."""
        async with (
            wiring.worker(shop.app, self.settings) as worker,
            wiring.desk(self.settings, local("demo")) as desk,
        ):
            async with asyncio.TaskGroup() as jobs:
                working = jobs.create_task(worker.run())
                painting = jobs.create_task(self._repaint(desk, shop.app.transport))
                try:
                    await self._chapters(desk, once=once)
                finally:
                    painting.cancel()
                    worker.stop()
                    await working
            await self._look(desk, shop.app.transport)

    async def _chapters(self, desk: Actions, *, once: bool) -> None:
        customers = orders()
        self._begin("Orders arrive. Some fail; retrying heals what it can.")
        for _ in range(ROUNDS):
            queue, data = next(customers)
            await shop.app.send(queue, data, source="webshop")
            await asyncio.sleep(0 if once else 0.15)
        await self._until_quiet()
        await self._put_back(desk)
        if once:
            return
        self._begin("New orders keep coming. Open the console, or try the commands below. Ctrl-C ends the shop.")
        while True:
            queue, data = next(customers)
            await shop.app.send(queue, data, source="webshop")
            await asyncio.sleep(1.0)

    async def _put_back(self, desk: Actions) -> None:
        shop.fix_flag().touch()
        self._begin("What cannot heal was set apart. The coupon bug is fixed now: its letters are put back.")
        found = await desk.letters(LetterQuery(type="ZeroDivisionError", status=Status.PENDING))
        ids = [letter.id for letter in found]
        self.left = ids.pop() if ids else ""
        outcomes = await desk.retry(ids)
        sent = sum(outcome.result is Result.SENT for outcome in outcomes)
        self.feed.add(f"redrive  {sent} letter(s) sent back to 'orders'")
        await self._until_quiet()
        letters = [await desk.letter(each) for each in ids]
        proven = sum(letter.status is Status.RESOLVED for letter in letters)
        self.feed.add(f"redrive  {proven} of {sent} came through: RESOLVED, confirmed by the handler")

    async def _until_quiet(self) -> None:
        """Until nothing waits, is retried or runs any more."""
        names = {name for queue in QUEUES for name in (queue, f"{queue}_retry")}
        while True:
            depths = await shop.app.transport.depths()
            if not any(depth.total for name, depth in depths.items() if name in names):
                return
            await asyncio.sleep(0.1)

    def _begin(self, chapter: str) -> None:
        self.chapter = chapter
        self.feed.add(f"story    {chapter}")

    async def _repaint(self, desk: Actions, transport: Transport) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                await self._look(desk, transport)
                await asyncio.sleep(0.2)

    async def _look(self, desk: Actions, transport: Transport) -> None:
        self.depths = await transport.depths()
        self.groups = await desk.groups()
        self._paint(self)
