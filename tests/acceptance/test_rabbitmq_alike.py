"""Messages without an id on RabbitMQ: two alike are two letters, whatever happens meanwhile (G1 before G3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive import App, Permanent
from redrive.transports.rabbitmq import address
from redrive.transports.rabbitmq.connection import connect
from redrive.transports.rabbitmq.methods import ConnectionLost
from redrive.transports.rabbitmq.publisher import Publisher
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.patience import until
from support.workshop import workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.clock import Clock
    from redrive.transports import Delivery, Names

PERSISTENT_AND_NOTHING_ELSE = b"\x10\x00\x02"


class CutBeforeAck(RabbitTransport):
    """Loses its connection before the first acknowledgement of a message from elsewhere, as if it were killed."""

    cut = False

    async def ack(self, delivery: Delivery) -> None:
        if delivery.message.properties is not None and not self.cut:
            self.cut = True
            (await self._consuming.connection()).abort(ConnectionLost("cut by the test"))
        await super().ack(delivery)


def opening(url: str, *, names: Names, clock: Clock, **_options: Any) -> RabbitTransport:
    return CutBeforeAck(url, names=names, clock=clock)


async def test_two_alike_are_at_least_two_letters_also_when_they_are_delivered_again(
    rabbitmq_url: str, tmp_path: Path
) -> None:
    app = App("shop")

    @app.handler("orders")
    async def refuse(_body: bytes) -> None:
        raise Permanent("no")

    async with workshop(app, tmp_path, broker_url=rabbitmq_url, opening=opening) as shop:
        await shop.send("orders", "the queue exists when it is there")
        await until(shop.empty)
        await from_elsewhere(rabbitmq_url, b"the same", times=2)

        async def all_settled() -> bool:
            return len(await shop.letters()) >= 3 and await shop.empty()

        await until(all_settled)
        bodies = [letter.message.body for letter in await shop.letters()]
        assert 2 <= bodies.count(b"the same") <= 4  # one on record and not acknowledged comes a second time


async def from_elsewhere(url: str, body: bytes, *, times: int) -> None:
    connection = await connect(address.parse(url), tls=None, name="elsewhere", heartbeat=30, within=5)
    publisher = Publisher(10)
    await publisher.open(connection)
    for _ in range(times):
        await publisher.publish(b"", b"orders", PERSISTENT_AND_NOTHING_ELSE, body, fits=1000)
    await connection.close()
