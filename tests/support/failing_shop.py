"""A shop in a process of its own, `redrive work`, that fails at orders of customers whom it does not know."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redrive.clock import new_id
from redrive.message import Message

if TYPE_CHECKING:
    from support.desk import Desk

_CODE = """
import json
from pathlib import Path

from redrive import App, Message, Permanent, Retry

app = App("shop", retry=Retry(1, "1s"))


class NoCustomer(Permanent):  # so that many in a row open no breaker
    pass


@app.handler("orders", name="charge")
async def charge(message: Message) -> None:
    order = json.loads(message.payload)
    if order["customer"] not in Path("customers").read_text().split():
        raise NoCustomer(f"order {order['order_id']} has no customer")
    with Path("charged").open("ab") as charged:
        charged.write(message.payload + b"\\n")
"""


class FailingShop:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        (desk.folder / "shop.py").write_text(_CODE)
        (desk.folder / "customers").write_text("ann")

    async def order(self, *orders: dict[str, Any]) -> None:
        """Sends them; `work` handles them."""
        async with self._desk.opened() as (_store, transport):
            for data in orders:
                message = Message.create(id=new_id(), sent_at=datetime.now(UTC), queue="orders", data=data)
                await transport.send(message, queue="orders")

    async def work(self) -> None:
        """Until nothing is left in its queue."""
        worked = await asyncio.to_thread(self._desk.process, "work", "shop:app", "--drain")
        assert worked.returncode == 0, worked.stderr

    async def fail_at(self, *orders: dict[str, Any]) -> None:
        await self.order(*orders)
        await self.work()

    def mend(self) -> None:
        """From the next order on, customers called nobody are known."""
        (self._desk.folder / "customers").write_text("ann nobody")

    @property
    def charged(self) -> list[bytes]:
        """The payloads of what went well, in their order."""
        file = self._desk.folder / "charged"
        return file.read_bytes().splitlines() if file.exists() else []
