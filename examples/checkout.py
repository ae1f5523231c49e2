"""The README's consumer. Try it:

redrive send orders '{"order_id": 123, "total": 299.90}'
redrive send orders '{"order_id": 124, "total": -1}'
redrive work checkout:app --drain
redrive list
"""

from __future__ import annotations

from dataclasses import dataclass

from redrive import App, DeadLetter, Message, Permanent, Retry, exponential

app = App("checkout")


@dataclass
class Order:
    order_id: int
    total: float


@app.handler("orders", retry=Retry(attempts=5, delays=exponential("5s", factor=2, at_most="5m", jitter="full")))
async def charge(order: Order, message: Message) -> None:
    if order.total < 0:
        raise Permanent("a total cannot be negative")
    print("charged order", order.order_id, "from", message.source)


@charge.on_dead_letter
async def tell(letter: DeadLetter) -> None:
    print("set apart:", letter.id, letter.type)
