"""What the shop's customers do: mostly ordinary orders, and the ones that the story is about."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_ITEMS = (
    ("coffee beans", 12.5),
    ("filter papers", 4.0),
    ("mug", 9.9),
    ("espresso machine", 349.0),
    ("grinder", 89.0),
)
_ROUND = 10


def orders() -> Iterator[tuple[str, dict[str, Any]]]:
    """Queue and data of one message after the other, for ever; the same every time."""
    for number in count(1001):
        item, price = _ITEMS[number % len(_ITEMS)]
        order: dict[str, Any] = {"order_id": number, "item": item, "quantity": number % 3 + 1, "price": price}
        place = number % _ROUND
        if place == 4:  # noqa: PLR2004  one in ten each: a coupon that meets the bug, bad data, a bad address
            order["coupon"] = "FREE-SHIPPING"
        elif place == 6:  # noqa: PLR2004  as above
            order["quantity"] = "two"
        elif place == 8:  # noqa: PLR2004  as above
            yield "emails", {"to": f"customer{number}", "template": "order-confirmed"}
            continue
        yield "orders", order
