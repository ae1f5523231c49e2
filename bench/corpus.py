"""The letters of a benchmark: always the same for one number of letters and one moment, in the order of time."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bench.causes import QUEUES, Cause, causes, cpf, zipf_weights
from redrive.dead_letter import Entry
from redrive.message import Message

BODY_BYTES = 1024
DAYS = 30
CUSTOMERS = 50_000
CHANNELS = ("app", "web", "branch", "partner")
RARE_WORD = "zibeline"
RARE_EVERY = 10_000
"""One letter of so many has the rare word in its body."""

EVENT_TYPES = {
    queue: tuple(f"{queue.replace('-', '_').upper()}_{what}" for what in whats)
    for queue, whats in zip(
        QUEUES,
        (("REQUESTED", "CORRECTED"),) * 11 + (("EMAIL", "SMS", "PUSH"),),
        strict=True,
    )
}

_STATUSES = ("PENDING", "RESOLVED", "DISCARDED", "QUARANTINED")
_SHARES = (60, 90, 98, 100)  # cumulative
_MEAN_HOURS = 20

_PRODUCTS = (
    "oak table", "desk lamp", "steel shelf", "paper ream", "printer toner", "office chair", "coffee beans",
    "floor mat", "whiteboard", "cable reel", "drill set", "safety gloves", "water filter", "door handle",
)  # fmt: skip
_WORDS = (
    "delivered", "late", "customer", "asked", "twice", "warehouse", "north", "branch", "manual", "entry", "urgent",
    "review", "before", "invoice", "contract", "renewed", "discount", "applied", "address", "changed", "phone",
    "unknown", "second", "attempt", "previous", "order", "merged", "supplier", "notified", "partial", "shipment",
    "return", "expected", "weekend", "pickup", "gate", "code", "internal", "transfer",
)  # fmt: skip
_NOTES = " ".join(random.Random(2).choices(_WORDS, k=20_000))


@dataclass(frozen=True)
class Letter:
    number: int
    cause: Cause
    entry: Entry
    event_type: str
    customer_id: str
    correlation_id: uuid.UUID
    status: str
    """What becomes of it, at `settled_at`; PENDING stays."""
    settled_at: datetime | None

    @property
    def trace(self) -> str:
        return self.entry.failures[-1].trace


def letters(count: int, now: datetime) -> Iterator[Letter]:
    """`count` letters of the last DAYS days before `now`, oldest first."""
    dice = random.Random(count)
    every = causes()
    weights = zipf_weights(len(every))
    start = now - timedelta(days=DAYS)
    step = timedelta(days=DAYS) / count
    for number in range(count):
        cause = dice.choices(every, cum_weights=weights)[0]
        yield _letter(number, cause, start + step * (number + dice.random()), now, dice)


def _letter(number: int, cause: Cause, at: datetime, now: datetime, dice: random.Random) -> Letter:
    status = dice.choices(_STATUSES, cum_weights=_SHARES)[0]
    settled_at = _settled_at(at, now, dice) if status in {"RESOLVED", "DISCARDED"} else None
    event_type = dice.choice(EVENT_TYPES[cause.queue])
    customer_id = 100_000 + dice.randrange(CUSTOMERS)
    correlation_id = uuid.UUID(int=dice.getrandbits(128), version=4)
    facts = {"event_type": event_type, "correlation_id": str(correlation_id), "occurred_at": at.isoformat()}
    message = _message(cause.queue, _body(number, customer_id, facts, dice), customer_id, at, dice)
    entry = _entry(f"bench:{cause.queue}:{number}", message, cause, cause.text(dice), at)
    if status == "QUARANTINED":
        entry = msgspec.structs.replace(entry, quarantine="three processes died of it")
    return Letter(number, cause, entry, event_type, str(customer_id), correlation_id, status, settled_at)


def _message(queue: str, body: bytes, customer_id: int, at: datetime, dice: random.Random) -> Message:
    return Message(
        id=str(uuid.UUID(int=dice.getrandbits(128), version=4)),
        queue=queue,
        body=body,
        sent_at=at - timedelta(seconds=dice.randrange(1, 60)),
        headers=(("content-type", "application/json"), ("traceparent", f"00-{dice.getrandbits(128):032x}-01")),
        key=str(customer_id).encode(),
        source="back-office",
    )


def _entry(identity: str, message: Message, cause: Cause, text: str, at: datetime) -> Entry:
    return Entry(
        identity=identity,
        message=message,
        queue=cause.queue,
        handler=cause.handler,
        failures=(cause.failure(text, at),),
        fingerprint=cause.fingerprint,
        at=at,
        first_attempt_at=at,
    )


def _settled_at(at: datetime, now: datetime, dice: random.Random) -> datetime:
    """Some time after it failed, when somebody goes through the letters, as happens at every full hour."""
    later = at + min(timedelta(hours=dice.expovariate(1 / _MEAN_HOURS)), (now - at) * dice.random())
    return min(later.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1), now)


def _body(number: int, customer: int, facts: dict[str, str], dice: random.Random) -> bytes:
    """JSON of BODY_BYTES, or a few more for a whole word."""
    content: dict[str, Any] = facts | {
        "customer": {
            "id": customer,
            "cpf": cpf(dice),
            "email": f"account-{customer}@example.org",
            "address": {"city": "Porto Novo", "state": "SP", "zip": f"{dice.randrange(10**8):08d}"},
        },
        "channel": dice.choice(CHANNELS),
        "amounts": {
            "total": dice.randrange(100, 10**6) / 100,
            "tax": dice.randrange(10**4) / 100,
            "currency": "BRL",
        },
        "items": [_item(dice) for _ in range(4)],
    }
    content["note"] = RARE_WORD if number % RARE_EVERY == RARE_EVERY // 2 else "none"
    content["note"] += _note(BODY_BYTES - len(msgspec.json.encode(content)), dice)
    return msgspec.json.encode(content)


def _note(length: int, dice: random.Random) -> str:
    """Whole words, so many characters or a few more."""
    start = _NOTES.index(" ", dice.randrange(len(_NOTES) - 2 * BODY_BYTES))
    return _NOTES[start : _NOTES.index(" ", start + length)]


def _item(dice: random.Random) -> dict[str, Any]:
    return {
        "sku": f"SKU-{dice.randrange(10**6):06d}",
        "name": dice.choice(_PRODUCTS),
        "quantity": dice.randrange(1, 20),
        "price": dice.randrange(100, 10**5) / 100,
    }
