"""The emulator's end of a link on which a client receives.

The delivery tag is the lock's token. A client that settles waits until the emulator has settled too, and told what
it has done: the same outcome, or a rejection that carries an error.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from proton import Delivery, Link

from support.servicebus.entity import Outcome
from support.servicebus.faults import Point
from support.servicebus.links import LinkEnd
from support.servicebus.refusals import Refusal

if TYPE_CHECKING:
    from support.servicebus.connection import EmulatedConnection
    from support.servicebus.entity import Entity
    from support.servicebus.held import Held


class Outlet(LinkEnd):
    def __init__(
        self, connection: EmulatedConnection, link: Any, entity: Entity, session: str | None = None
    ) -> None:
        self._connection = connection
        self._link = link
        self._entity = entity
        self._session = session
        self._deletes = link.remote_snd_settle_mode == Link.SND_SETTLED

    def hand_out(self) -> None:
        while self._link.credit > 0 and (held := self._entity.take(self._session)) is not None:
            self._send(held)
        if self._link.drain_mode:
            self._link.drained()

    def settled(self, delivery: Any) -> None:
        outcome = _outcome_of(delivery)
        if outcome is None:
            return
        act = partial(self._entity.settle, delivery.token, outcome)
        if not delivery.settled:
            self._connection.perform(Point.SETTLE, act, partial(_answer, delivery))
            return
        with suppress(Refusal):  # whoever settles by itself does not ask what became of it
            act()
        delivery.settle()
        self._connection.emulator.wake()

    def closed(self) -> None:
        """A lock on a message outlives its receiver, one on a session does not."""
        for session in self._entity.sessions.give_up(self):
            self._entity.drop_session(session)

    def _send(self, held: Held) -> None:
        assert held.lock is not None
        delivery = self._link.delivery(held.lock.token.bytes_le)
        self._link.stream(held.encoded())
        self._link.advance()
        if self._deletes:
            self._entity.remove(held)
            delivery.settle()
        else:
            delivery.token = held.lock.token


def _outcome_of(delivery: Any) -> Outcome | None:
    state = delivery.remote_state
    if state == Delivery.ACCEPTED:
        return Outcome("completed")
    if state == Delivery.RELEASED:
        return Outcome("released")
    if state == Delivery.MODIFIED:
        return Outcome("deferred" if delivery.remote.undeliverable else "abandoned")
    if state == Delivery.REJECTED:
        info = getattr(delivery.remote.condition, "info", None) or {}
        return Outcome("dead-lettered", info.get("DeadLetterReason"), info.get("DeadLetterErrorDescription"))
    return None


def _answer(delivery: Any, result: Refusal | None) -> None:
    if result is None:
        delivery.update(delivery.remote_state)
    else:
        delivery.local.condition = result.on_the_wire()
        delivery.update(Delivery.REJECTED)
    delivery.settle()
