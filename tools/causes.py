"""What fails in the shop of the pictures: where, how often, since when, and with what in the messages."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redrive.failure import FailureKind, Frame

MINUTE, HOUR, DAY = 1.0, 60.0, 1440.0
"""In minutes."""


@dataclass(frozen=True)
class Burst:
    """So many letters between two moments, in minutes before now."""

    count: int
    since: float
    until: float = 0.0


@dataclass(frozen=True)
class Cause:
    name: str
    queue: str
    handler: str
    type: str
    text: Callable[[dict[str, Any]], str]
    frames: tuple[Frame, ...]
    data: Callable[[random.Random, int], dict[str, Any]]
    bursts: tuple[Burst, ...]
    kind: FailureKind = FailureKind.PERMANENT
    attempts: int = 1
    behind: tuple[str, str] | None = None
    """Type and text of what it was caused by."""


def _own(file: str, line: int, function: str, source: str) -> Frame:
    return Frame(f"shop/{file}", line, function, source, own=True)


def _library(file: str, line: int, function: str, source: str) -> Frame:
    return Frame(f"/opt/shop/.venv/lib/python3.13/site-packages/{file}", line, function, source, own=False)


def _order(dice: random.Random, number: int) -> dict[str, Any]:
    return {
        "order_id": 48_200 + number,
        "country": dice.choices(("BR", "PT", "DE", "FR"), (60, 12, 16, 12))[0],
        "items": [{"sku": f"SKU-{dice.randint(100, 999)}", "quantity": dice.randint(1, 4)}],
        "total": {"currency": "EUR", "amount": f"{dice.randint(900, 34_900) / 100:.2f}"},
    }


def _payment(dice: random.Random, number: int) -> dict[str, Any]:
    return {
        "payment_id": f"pay_{dice.randrange(16**10):010x}",
        "order_id": 48_200 + number,
        "acquirer": dice.choices(("lisboa-2", "porto-1", "madrid-1"), (97, 2, 1))[0],
        "country": dice.choices(("PT", "ES", "FR"), (97, 2, 1))[0],
        "amount": {"currency": "EUR", "value": dice.randint(900, 34_900)},
        "customer": {"name": "Ana Prado", "email": f"ana.prado{number}@example.com"},
    }


def _other_payment(dice: random.Random, number: int) -> dict[str, Any]:
    countries = dice.choices(("BR", "PT", "DE", "FR"), (66, 12, 12, 10))[0]
    acquirer = dice.choice(("sao-paulo-1", "frankfurt-1", "lisboa-2"))
    return _payment(dice, number) | {"country": countries, "acquirer": acquirer}


def _invoice(dice: random.Random, number: int) -> dict[str, Any]:
    return {"invoice": f"INV-{20_000 + number}", "tax_id": "", "lines": dice.randint(1, 9), "country": "DE"}


def _mail(dice: random.Random, number: int) -> dict[str, Any]:
    template = dice.choice(("order-confirmed", "password", "shipped"))
    return {"to": f"customer{number}@example.com", "template": template}


def _shipment(dice: random.Random, number: int) -> dict[str, Any]:
    return {"shipment": f"SHP-{7_000 + number}", "carrier": "NordPost", "weight_g": dice.randint(200, 9_000)}


CAUSES = (
    Cause(
        name="gateway",
        queue="payments",
        handler="charge_card",
        type="shop.gateway.GatewayTimeout",
        text=lambda _: "the acquirer did not answer within 10 s",
        frames=(
            _own("payments/handlers.py", 58, "charge_card", "receipt = await gateway.charge(payment)"),
            _library(
                "tenacity/asyncio/__init__.py", 189, "async_wrapped", "return await copy(fn, *args, **kwargs)"
            ),
            _own("payments/gateway.py", 131, "charge", "raise GatewayTimeout(self.acquirer, TIMEOUT) from error"),
        ),
        data=_payment,
        bursts=(Burst(214, 2.4 * HOUR, 3.0),),
        kind=FailureKind.TRANSIENT,
        attempts=4,
        behind=("httpx.ReadTimeout", "timed out"),
    ),
    Cause(
        name="discount",
        queue="payments",
        handler="charge_card",
        type="decimal.InvalidOperation",
        text=lambda _: "cannot quantize a discount of 'NaN'",
        frames=(
            _own("payments/handlers.py", 51, "charge_card", "amount = payment.amount - discount_of(payment)"),
            _own("payments/discounts.py", 27, "discount_of", 'return share.quantize(Decimal("0.01"))'),
        ),
        data=_other_payment,
        bursts=(Burst(9, 4.0, 0.4),),
    ),
    Cause(
        name="customer",
        queue="orders",
        handler="place_order",
        type="shop.orders.NoCustomer",
        text=lambda data: f"order {data['order_id']} has no customer",
        frames=(
            _own("orders/handlers.py", 34, "place_order", "customer = customer_of(order)"),
            _own("orders/customers.py", 12, "customer_of", "raise NoCustomer(order) from error"),
        ),
        data=_order,
        bursts=(Burst(46, 5 * DAY, 4 * DAY), Burst(31, 20 * HOUR, 6 * HOUR)),
        behind=("KeyError", "'customer_id'"),
    ),
    Cause(
        name="duplicate",
        queue="orders",
        handler="place_order",
        type="sqlalchemy.exc.IntegrityError",
        text=lambda data: f'duplicate key value violates unique constraint "orders_pkey": {data["order_id"]}',
        frames=(
            _own("orders/handlers.py", 41, "place_order", "await session.commit()"),
            _library("sqlalchemy/ext/asyncio/session.py", 1014, "commit", "await greenlet_spawn(...)"),
        ),
        data=_order,
        bursts=(Burst(23, 6 * DAY, 2 * HOUR),),
    ),
    Cause(
        name="tax",
        queue="invoices",
        handler="issue_invoice",
        type="pydantic.ValidationError",
        text=lambda _: "tax_id: a text of 11 digits is needed",
        frames=(
            _own("invoices/handlers.py", 22, "issue_invoice", "invoice = Invoice.model_validate(message.data)"),
        ),
        data=_invoice,
        bursts=(Burst(88, 7 * DAY, 0.2 * HOUR),),
    ),
    Cause(
        name="mail",
        queue="emails",
        handler="send_mail",
        type="smtplib.SMTPRecipientsRefused",
        text=lambda _: "550 no such mailbox",
        frames=(_own("emails/handlers.py", 19, "send_mail", "smtp.send_message(mail)"),),
        data=_mail,
        bursts=(Burst(64, 7 * DAY, 0.5 * HOUR),),
    ),
    Cause(
        name="label",
        queue="shipments",
        handler="print_label",
        type="shop.carriers.CarrierDown",
        text=lambda data: f"{data['carrier']} answered 503",
        frames=(
            _own("shipments/handlers.py", 30, "print_label", "label = await carrier.label(shipment)"),
            _own("shipments/carriers.py", 77, "label", "raise CarrierDown(self.name, answer.status_code)"),
        ),
        data=_shipment,
        bursts=(Burst(120, 31 * HOUR, 28.5 * HOUR),),
        kind=FailureKind.TRANSIENT,
        attempts=3,
    ),
)
