"""One TCP connection to RabbitMQ: handshake, frames in and out, heartbeats, blocking, and a close that waits.

1. What is written in one turn of the event loop goes out in one piece.
2. Silence of two heartbeat intervals means the broker is gone (a half-open connection gives no other sign).
3. When it is lost, every channel hears of it once, and everything asked on them fails with ConnectionLost. A
   connection is never mended: whoever needs one opens the next, and what belonged to the old one is stale.
"""

from __future__ import annotations

import asyncio
import math
import random
from typing import TYPE_CHECKING, Any

import structlog

from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.channel import Channel
from redrive.transports.rabbitmq.methods import Channel as ChannelMethods
from redrive.transports.rabbitmq.methods import ChannelClosed, ConnectionLost, decode, encode
from redrive.transports.rabbitmq.methods import Connection as Methods

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from redrive.transports.rabbitmq.address import Address, Host
    from redrive.transports.rabbitmq.channel import Listener

log = structlog.get_logger("redrive.rabbitmq")

_FRAME_MAX = 131072
_CHANNEL_MAX = 2047
_SILENCE = 3
"""Half intervals without a sign of life: at least one and a half whole ones, at most two."""
_CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


async def connect(
    address: Address, *, tls: ssl.SSLContext | None, name: str, heartbeat: float, within: float
) -> Connection:
    """To the first host that answers, in an order that differs from process to process. Raises ConnectionLost with
    what each said. A wrong password is told so too: somebody may be about to mend it.
    """
    said: list[str] = []
    remedy = "start it, or check [broker] url: host, user, password and vhost"
    for host in random.sample(address.hosts, len(address.hosts)):
        try:
            return await _connect(address, host, tls=tls, name=name, heartbeat=heartbeat, within=within)
        except (OSError, TimeoutError, ConnectionLost) as error:
            said.append(f"{host}: {str(error) or 'no answer in time'}")
            if "SSL" in str(error):
                remedy = "set [broker.rabbitmq] tls_ca to the authority that signed the broker's certificate"
    raise ConnectionLost(
        f"cannot reach RabbitMQ at {'; '.join(said)}",
        remedy=remedy,
    )


async def _connect(
    address: Address, host: Host, *, tls: ssl.SSLContext | None, name: str, heartbeat: float, within: float
) -> Connection:
    loop = asyncio.get_running_loop()
    connection = Connection(address, name, heartbeat)
    try:
        async with asyncio.timeout(within):
            await loop.create_connection(lambda: connection, host.name, host.port, ssl=tls)
            await connection.opened
    except BaseException as error:
        connection.abort(ConnectionLost(str(error) or "no answer in time"))
        raise
    return connection


class Connection(asyncio.Protocol):
    """Made by `connect`."""

    def __init__(self, address: Address, name: str, heartbeat: float) -> None:
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.why_lost: ConnectionLost | None = None
        self.frame_max = _FRAME_MAX
        self.version: tuple[int, ...] = ()
        self.user = address.user
        self.blocked = ""
        """Why the broker takes no messages just now, or nothing."""
        self._address = address
        self._name = name
        self._heartbeat = heartbeat
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._channels: dict[int, Channel] = {}
        self._channel_max = _CHANNEL_MAX
        self._highest = 0
        self._free: list[int] = []
        self._rest = b""
        self._out: list[bytes] = []
        self._heard = True
        self._spoke = True
        self._silent = 0
        self._beat: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._unblocked = asyncio.Event()
        self._unblocked.set()
        self._closing: asyncio.Future[None] | None = None

    async def channel(self, listener: Listener) -> Channel:
        if self.why_lost is not None:
            raise self.why_lost
        number = self._free.pop() if self._free else self._highest + 1
        if number > self._channel_max:
            raise ConnectionLost(
                f"more than {self._channel_max} channels on one connection",
                remedy="handle fewer queues in one process, or raise the broker's channel_max",
            )
        self._highest = max(self._highest, number)
        channel = Channel(self, number, listener)
        self._channels[number] = channel
        try:
            await channel.call(ChannelMethods.Open())
        except BaseException:  # cancelled: nobody else knows of it
            channel.abandon(ChannelClosed(0, "given up before it was open"))
            raise
        return channel

    def soon(self, job: Callable[[], None]) -> None:
        """Before the next turn of the event loop ends."""
        self._loop.call_soon(job)

    def write(self, frames: bytes) -> None:
        """Goes out with everything else written in this turn of the event loop."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frames)

    async def room(self) -> None:
        """Waits while the broker reads slower than we write, and while it has blocked us."""
        await self._writable.wait()
        await self._unblocked.wait()
        if self.why_lost is not None:
            raise self.why_lost

    @property
    def hurried(self) -> bool:
        """Whether `room` would wait."""
        return not (self._writable.is_set() and self._unblocked.is_set())

    async def close(self, *, within: float = 5.0) -> None:
        """Waits for the broker's Close-Ok: all that was written before has been handled then. Safe to repeat."""
        if self.why_lost is not None or self._transport is None:
            return
        if self._closing is None:
            self._closing = self._loop.create_future()
            self.write(encode(Methods.Close(reply_code=200, reply_text="done", class_id=0, method_id=0), 0))
        try:
            async with asyncio.timeout(within):
                await asyncio.shield(self._closing)
        except TimeoutError:
            log.warning("the broker did not answer the close of a connection", connection=self._name)
        self.abort(ConnectionLost("closed by us"))

    def abort(self, why: ConnectionLost) -> None:
        """Ends it at once, telling the broker nothing. Safe to repeat."""
        if self.why_lost is not None:
            return
        self.why_lost = why
        if self._transport is not None:
            self._transport.abort()
        if self._beat is not None:
            self._beat.cancel()
        if not self.opened.done():
            self.opened.set_exception(why)
            self.opened.exception()
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        self._writable.set()
        self._unblocked.set()
        for channel in list(self._channels.values()):
            channel.end(why)

    def forget(self, channel: Channel) -> None:
        if self._channels.get(channel.number) is channel:
            del self._channels[channel.number]
            self._free.append(channel.number)

    # asyncio's side.

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=4 * 2**20)
        transport.write(wire.GREETING)

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(ConnectionLost(f"the connection to RabbitMQ was lost: {exc or 'closed by the broker'}"))

    def eof_received(self) -> None:
        return None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._heard = True
        try:
            self._frames(self._rest + data if self._rest else data)
        except ConnectionLost as error:
            self.abort(error)
        except Exception as error:  # noqa: BLE001  whatever came, nothing behind it can be understood
            self.abort(ConnectionLost(f"RabbitMQ sent what cannot be read: {error!r}"))

    def _frames(self, data: bytes) -> None:
        at, end = 0, len(data)
        head, channels = wire.HEAD.unpack_from, self._channels
        while end - at >= wire.OVERHEAD:
            kind, number, size = head(data, at)
            stop = at + 7 + size
            if stop >= end:
                if size > self.frame_max:
                    raise ConnectionLost("the broker sent a frame larger than agreed: this is not AMQP 0-9-1")
                break
            if data[stop] != wire.FRAME_END:
                raise ConnectionLost("the broker sent a frame without an end: the two sides are out of step")
            payload = data[at + 7 : stop]
            at = stop + 1
            channel = channels.get(number)
            if channel is None:
                if number == 0:
                    self._own(kind, payload)
            elif kind == wire.METHOD:
                channel.method(payload)
            elif kind == wire.HEADER:
                channel.header(payload)
            elif kind == wire.BODY:
                channel.body(payload)
        self._rest = data[at:] if at < end else b""

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self.why_lost is None and self._transport is not None:
            self._spoke = True
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _own(self, kind: int, payload: bytes) -> None:
        if kind != wire.METHOD:
            return  # a heartbeat has been heard already
        method = decode(payload)
        answer = getattr(self, f"_on_{type(method).__name__.lower()}", None)
        if answer is None:
            raise ConnectionLost(f"the broker sent {method.name}, which nobody had asked for")
        answer(method)

    # The broker's words on channel 0.

    def _on_start(self, method: Methods.Start) -> None:
        told = method.server_properties
        self.version = _version(told.get("version"))
        response = f"\0{self._address.user}\0{self._address.password}"
        properties: dict[str, Any] = {
            "product": "Redrive",
            "platform": "Python",
            "connection_name": self._name,
            "capabilities": dict(_CAPABILITIES),
        }
        self.write(encode(Methods.StartOk(properties, "PLAIN", response, "en_US"), 0))

    def _on_tune(self, method: Methods.Tune) -> None:
        self.frame_max = min(method.frame_max or _FRAME_MAX, _FRAME_MAX)
        self._channel_max = min(method.channel_max or _CHANNEL_MAX, _CHANNEL_MAX)
        self._heartbeat = _agreed(method.heartbeat, self._heartbeat)
        self.write(
            encode(
                Methods.TuneOk(
                    channel_max=self._channel_max,
                    frame_max=self.frame_max,
                    heartbeat=self._heartbeat,
                ),
                0,
            )
        )
        self.write(encode(Methods.Open(virtual_host=self._address.vhost), 0))

    def _on_openok(self, _method: Methods.OpenOk) -> None:
        if self._heartbeat:
            self._beat = self._loop.call_later(self._heartbeat / 2, self._tick)
        if not self.opened.done():
            self.opened.set_result(None)

    def _on_close(self, method: Methods.Close) -> None:
        self.write(encode(Methods.CloseOk(), 0))
        self._flush()
        self.abort(ConnectionLost(f"RabbitMQ closed the connection: {method.reply_text} ({method.reply_code})"))

    def _on_closeok(self, _method: Methods.CloseOk) -> None:
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)

    def _on_blocked(self, method: Methods.Blocked) -> None:
        self.blocked = method.reason or "an alarm"
        self._unblocked.clear()
        log.warning("the broker blocks publishing", reason=self.blocked, connection=self._name)

    def _on_unblocked(self, _method: Methods.Unblocked) -> None:
        self.blocked = ""
        self._unblocked.set()
        log.info("the broker takes messages again", connection=self._name)

    def _tick(self) -> None:
        self._silent = 0 if self._heard else self._silent + 1
        if self._silent >= _SILENCE:
            self.abort(ConnectionLost(f"no sign of life from RabbitMQ for {2 * self._heartbeat:g} s"))
            return
        if not self._spoke:
            self.write(wire.HEARTBEAT_FRAME)
        self._heard = self._spoke = False
        self._beat = self._loop.call_later(self._heartbeat / 2, self._tick)


def _agreed(theirs: int, ours: float) -> int:
    """The shorter of both, in whole seconds as AMQP has them; 0 is none, and only if both say so."""
    return math.ceil(min(theirs, ours) if theirs and ours else max(theirs, ours))


def _version(told: Any) -> tuple[int, ...]:
    parts = str(told or "").split("-")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())
