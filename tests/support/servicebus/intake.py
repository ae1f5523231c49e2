"""The emulator's end of a link on which a client sends to a queue or a topic."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from proton import Delivery

from support.servicebus import sections
from support.servicebus.faults import Point
from support.servicebus.links import LinkEnd
from support.servicebus.refusals import NOT_ALLOWED, TOO_LARGE, Refusal

if TYPE_CHECKING:
    from support.servicebus.connection import EmulatedConnection
    from support.servicebus.entity import Entity
    from support.servicebus.namespace import Namespace
    from support.servicebus.sections import Content

_SCHEDULED = "x-opt-scheduled-enqueue-time"


class Intake(LinkEnd):
    def __init__(self, connection: EmulatedConnection, link: Any, path: str, entity: Entity) -> None:
        self._connection = connection
        self._link = link
        self._path = path
        self._entity = entity

    def received(self, delivery: Any, encoded: bytes) -> None:
        batch = self._connection.formats.next_of(self._link.name) == sections.BATCH
        self._connection.perform(
            Point.SEND, partial(self._store, encoded, batch=batch), partial(_answer, delivery)
        )

    def _store(self, encoded: bytes, *, batch: bool) -> None:
        if len(encoded) > self._entity.rules.max_message_bytes:
            raise Refusal(TOO_LARGE, f"{len(encoded)} bytes are too many for {self._path!r}")
        contents = [sections.read(each) for each in (sections.split_batch(encoded) if batch else [encoded])]
        check_sessions(self._entity, contents)
        for content in contents:
            put(self._connection.emulator.namespace, self._path, content)


def check_sessions(entity: Entity, contents: list[Content]) -> None:
    if entity.rules.sessions and any(content.session_id is None for content in contents):
        raise Refusal(NOT_ALLOWED, "the SessionId was not set, and this entity requires sessions")


def put(namespace: Namespace, path: str, content: Content) -> int:
    """At once, or when its annotation says."""
    scheduled = content.annotations.get(_SCHEDULED)
    return namespace.send(path, content, due_at=None if scheduled is None else int(scheduled) / 1000)


def _answer(delivery: Any, result: Refusal | None) -> None:
    if result is None:
        delivery.update(Delivery.ACCEPTED)
    else:
        delivery.local.condition = result.on_the_wire()
        delivery.update(Delivery.REJECTED)
    delivery.settle()
