"""The shop. Four ways to fail, each with its own cure.

- the stock service answers only from the third call on: heals by retrying
- an order whose quantity is no number: nothing to retry, set apart at once, wants an edit
- a bug in the branch for coupons: set apart at once, wants a new version of the code
- a payment gateway that times out now and then: heals by retrying with a growing delay
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from redrive.app import App
from redrive.errors import Permanent
from redrive.message import Message
from redrive.policy import Retry
from redrive.schedule import explicit, exponential

app = App("shop", version="1.4.2", kinds={ZeroDivisionError: "permanent"})

RATES = {"WELCOME10": 10, "SPRING": 25, "FREE-SHIPPING": 0}


@dataclass
class Order:
    order_id: int
    item: str
    quantity: int
    price: float
    coupon: str | None = None


@dataclass
class Payment:
    order_id: int
    amount: float


@dataclass
class Email:
    to: str
    template: str


@app.handler("orders", retry=Retry(attempts=4, delays=explicit(["500ms", "1s", "2s"])))
async def place_order(order: Order, message: Message) -> None:
    reserve_stock(order, calls=message.retry_count + 1)
    total = order.price * order.quantity - discount(order)
    await app.send("payments", {"order_id": order.order_id, "amount": round(total, 2)})
    count("orders")


def reserve_stock(order: Order, *, calls: int) -> None:
    if order.item == "espresso machine" and calls < 3:  # noqa: PLR2004  the third call is the charm
        raise ConnectionError(f"stock service refused the connection for order {order.order_id}")


def discount(order: Order) -> float:
    if order.coupon is None:
        return 0.0
    if is_fixed():
        return order.price * order.quantity * RATES[order.coupon] / 100
    # The bug: the rate is a percentage, and for free shipping it is 0.
    return order.price * order.quantity / (100 / RATES[order.coupon])


@app.handler("payments", retry=Retry(attempts=5, delays=exponential("300ms", factor=2, jitter="none")))
async def charge(payment: Payment, message: Message) -> None:
    # Flaky, but the same for the same message: about one call in three times out.
    luck = zlib.crc32(f"{message.id}/{message.retry_count}".encode()) % 3
    if luck == 0 and message.retry_count < 3:  # noqa: PLR2004  it heals before the attempts run out
        raise TimeoutError(f"payment gateway did not answer within 2.0 s for order {payment.order_id}")
    await app.send("emails", {"to": f"customer{payment.order_id}@shop.example", "template": "order-confirmed"})
    count("payments")


@app.handler("emails")
def send_email(email: Email) -> None:
    if "@" not in email.to:
        raise Permanent(f"not an address: {email.to!r}")
    count("emails")


def count(queue: str) -> None:
    done[queue] = done.get(queue, 0) + 1


done: dict[str, int] = {}
"""Handled messages by queue, for the demonstration's screen."""


def fix_flag() -> Path:
    return Path(os.environ.get("REDRIVE_DEMO_FOLDER", ".redrive/demo")) / "coupon-bug-is-fixed"


def is_fixed() -> bool:
    """Stands for a new version of the code: the demonstration "deploys" it by making a file."""
    return fix_flag().exists()
