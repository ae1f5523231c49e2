"""One client of the emulator: proton speaks AMQP, this says what is behind the links.

Proton's engine does no I/O of its own, so that the emulator lives in the event loop of the test.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from proton import Collector, Connection, Terminus, Transport

from support.servicebus.faults import Fault, Point
from support.servicebus.formats import Formats
from support.servicebus.intake import Intake
from support.servicebus.links import LinkEnd, address_of, asked_session, grant, path_of, patience_of
from support.servicebus.outlet import Outlet
from support.servicebus.refusals import NOT_ALLOWED, NOT_FOUND, SESSION_LOCK_LOST, TIMEOUT, Refusal
from support.servicebus.requests import NODES, Requests, Responses

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.servicebus.emulator import ServiceBusEmulator
    from support.servicebus.entity import Entity

_CREDIT = 1000
_RESET = struct.pack("ii", 1, 0)
"""Closed with a reset: after a polite end the SDK would keep its socket."""
T = TypeVar("T")


class EmulatedConnection(asyncio.Protocol):
    def __init__(self, emulator: ServiceBusEmulator) -> None:
        self.emulator = emulator
        self.formats = Formats()
        self.ends: dict[Any, LinkEnd] = {}
        self._waiting: dict[Any, Entity] = {}
        """Receivers of whatever session is free next, of which none is yet."""
        self._line: asyncio.Transport | None = None
        self._events = Collector()
        self._engine = Transport(Transport.SERVER)
        self._connection = Connection()
        self._later: set[asyncio.Task[None]] = set()

    # The line.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._line = transport
        self._connection.collect(self._events)
        self._engine.sasl().allowed_mechs("ANONYMOUS")
        self._engine.bind(self._connection)
        self.emulator.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self.formats.feed(data)
        while data and self._line is not None:
            room = self._engine.capacity()
            if room <= 0:
                self.cut()
                return
            self._engine.push(data[:room])
            data = data[room:]
            self._handle_events()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the protocol's
        self._gone()

    def cut(self) -> None:
        """As a network does it: nobody says anything."""
        line = self._line
        self._gone()
        if line is not None:
            line.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            line.abort()

    def flush(self) -> None:
        self._handle_events()
        while self._line is not None and (pending := self._engine.pending()):
            if pending < 0:
                self._line.close()
                return
            self._line.write(bytes(self._engine.peek(pending) or b""))
            self._engine.pop(pending)
            self._handle_events()

    def _gone(self) -> None:
        self._line = None
        self.emulator.connections.discard(self)
        for task in self._later:
            task.cancel()
        for end in self.ends.values():
            end.closed()
        self.ends.clear()
        self._waiting.clear()
        self.emulator.wake()

    # What the client wants.

    def _handle_events(self) -> None:
        while self._line is not None and (event := self._events.peek()) is not None:
            handle = getattr(self, str(event.type.method), None)
            if handle is not None:
                handle(event)
            self._events.pop()

    def on_connection_remote_open(self, event: Any) -> None:
        event.connection.container = "emulator"
        event.connection.open()

    def on_connection_remote_close(self, event: Any) -> None:
        event.connection.close()

    def on_session_remote_open(self, event: Any) -> None:
        event.session.open()

    def on_session_remote_close(self, event: Any) -> None:
        for link in [link for link in self.ends if link.session == event.session]:
            self._forget(link)
        event.session.close()

    def on_link_remote_open(self, event: Any) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.snd_settle_mode, link.rcv_settle_mode = link.remote_snd_settle_mode, link.remote_rcv_settle_mode
        path = path_of(address_of(link))
        if path.endswith(NODES):
            self._attached(link, Responses(link, path) if link.is_sender else Requests(self, link, path))
        else:
            self.perform(Point.ATTACH, partial(self._end_of, link, path), partial(self._attached, link))

    def on_link_remote_close(self, event: Any) -> None:
        self._forget(event.link)
        event.link.close()

    def on_link_remote_detach(self, event: Any) -> None:
        self._forget(event.link)
        event.link.detach()

    def on_link_flow(self, event: Any) -> None:
        if event.link.is_sender:
            self.emulator.wake()

    def on_delivery(self, event: Any) -> None:
        delivery, end = event.delivery, self.ends.get(event.link)
        if end is None:
            return
        if event.link.is_sender:
            if delivery.updated:
                end.settled(delivery)
        elif delivery.readable and not delivery.partial:
            encoded = bytes(event.link.recv(delivery.pending) or b"")
            event.link.advance()
            event.link.flow(1)
            end.received(delivery, encoded)

    # What it gets.

    def perform(self, point: Point, act: Callable[[], T], answer: Callable[[T | Refusal], None]) -> None:
        """Does something, as far as the planned fault lets it."""
        fault = self.emulator.faults.take(point)
        if fault.cut_before:
            self.cut()
            return
        result = _done(act, fault)
        self.emulator.wake()
        if fault.cut_after:
            self.cut()
        elif fault.hold is not None:
            task = asyncio.get_running_loop().create_task(self._answer_later(fault.hold, partial(answer, result)))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
        else:
            answer(result)

    def hand_out(self) -> None:
        for link, entity in list(self._waiting.items()):
            session = entity.free_session()
            if session is not None:
                del self._waiting[link]
                self._attached(link, self._outlet(link, entity, session))
        for end in list(self.ends.values()):
            end.hand_out()
        self.flush()

    def session_lost(self, owner: object) -> None:
        for link, end in list(self.ends.items()):
            if end is owner:
                self._forget(link)
                self._refuse(link, Refusal(SESSION_LOCK_LOST, "the session lock has expired"))
        self.flush()

    async def _answer_later(self, moment: asyncio.Event, answer: Callable[[], None]) -> None:
        await moment.wait()
        answer()
        self.flush()

    # Links.

    def _end_of(self, link: Any, path: str) -> LinkEnd | None:
        """None: it waits for a session."""
        namespace = self.emulator.namespace
        entity = namespace.receivable(path) if link.is_sender else namespace.sendable(path)
        if entity is None:
            raise Refusal(NOT_FOUND, f"the messaging entity {path!r} could not be found")
        if link.is_receiver:
            link.max_message_size = entity.rules.max_message_bytes
            return Intake(self, link, path, entity)
        wants_session, session = asked_session(link)
        if wants_session != entity.rules.sessions:
            raise Refusal(NOT_ALLOWED, f"{path!r} {'has no' if wants_session else 'requires'} sessions")
        if not wants_session:
            return Outlet(self, link, entity)
        session = session or entity.free_session()
        if session is None:
            self._wait_for_session(link, entity)
            return None
        return self._outlet(link, entity, session)

    def _outlet(self, link: Any, entity: Entity, session: str) -> Outlet:
        outlet = Outlet(self, link, entity, session)
        grant(link, session, until=entity.sessions.accept(session, outlet))
        return outlet

    def _wait_for_session(self, link: Any, entity: Entity) -> None:
        self._waiting[link] = entity
        asyncio.get_running_loop().call_later(patience_of(link), self._stop_waiting, link)

    def _stop_waiting(self, link: Any) -> None:
        if self._waiting.pop(link, None) is not None:
            self._refuse_attach(link, Refusal(TIMEOUT, "no session with messages became free"))
            self.flush()

    def _attached(self, link: Any, end: LinkEnd | Refusal | None) -> None:
        if isinstance(end, Refusal):
            self._refuse_attach(link, end)
        elif end is not None:
            self.ends[link] = end
            link.open()
            if link.is_receiver:
                link.flow(_CREDIT)

    def _refuse_attach(self, link: Any, refusal: Refusal) -> None:
        """An answer without what was asked for, and then the reason: so AMQP says no to a link."""
        link.source.type = link.target.type = Terminus.UNSPECIFIED
        link.open()
        self._refuse(link, refusal)

    def _refuse(self, link: Any, refusal: Refusal) -> None:
        link.condition = refusal.on_the_wire()
        link.close()

    def _forget(self, link: Any) -> None:
        self._waiting.pop(link, None)
        end = self.ends.pop(link, None)
        if end is not None:
            end.closed()
            self.emulator.wake()


def _done(act: Callable[[], T], fault: Fault) -> T | Refusal:
    if fault.refuse is not None:
        return fault.refuse
    try:
        return act()
    except Refusal as refusal:
        return refusal
