"""The messages as each peer's own producer writes them: the same order inside, each one's envelope around it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SOME_ID = "11111111-2222-4333-8444-555555555555"
"""Stands for an id in what is written once and sent often; replaced by another one in every message."""


@dataclass(frozen=True)
class Written:
    """Body and properties, with SOME_ID wherever an id of its own belongs."""

    body: bytes
    properties: dict[str, Any] = field(default_factory=dict)


def order(size: int) -> dict[str, Any]:
    """Data whose JSON has this many bytes."""
    bare = {"order_id": 123, "note": ""}
    return bare | {"note": "x" * (size - len(json.dumps(bare)))}


def plain(size: int) -> Written:
    """As a producer in any language sends it."""
    properties = {"content_type": "application/json", "message_id": SOME_ID}
    return Written(json.dumps(order(size)).encode(), properties)


def dead(size: int) -> Written:
    """As the broker dead-letters it."""
    death = {
        "count": 1,
        "reason": "rejected",
        "queue": "payments",
        "time": datetime(2026, 1, 2, tzinfo=UTC),
        "exchange": "",
        "routing-keys": ["payments"],
    }
    written = plain(size)
    return Written(written.body, written.properties | {"headers": {"x-death": [death]}})


def for_dramatiq(size: int) -> Written:
    from dramatiq import Message  # noqa: PLC0415  only whom it is for loads it

    message: Message[Any] = Message(
        queue_name="orders",
        actor_name="handle",
        args=(order(size),),
        kwargs={},
        options={},
        message_id=SOME_ID,
    )
    return Written(message.encode())


def for_celery(size: int) -> Written:
    from celery import Celery  # noqa: PLC0415  as above

    made = Celery("bench").amqp.as_task_v2(SOME_ID, "handle", args=(order(size),), kwargs={})
    known = {
        name: value for name, value in made.properties.items() if name in ("correlation_id", "reply_to") and value
    }
    properties = {
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "headers": made.headers,
        **known,
    }
    return Written(json.dumps(made.body).encode(), properties)


def for_taskiq(size: int) -> Written:
    from taskiq.formatters.json_formatter import JSONFormatter  # noqa: PLC0415  as above
    from taskiq.message import TaskiqMessage  # noqa: PLC0415  as above

    message = TaskiqMessage(task_id=SOME_ID, task_name="handle", labels={}, args=[order(size)], kwargs={})
    made = JSONFormatter().dumps(message)
    return Written(made.message, {"headers": {"task_id": SOME_ID, "task_name": "handle"}})
