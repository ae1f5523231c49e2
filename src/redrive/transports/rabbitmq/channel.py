"""One channel: calls and their answers in order, content put together from its frames, the broker's own words."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from redrive.transports.rabbitmq import wire
from redrive.transports.rabbitmq.methods import Basic, ChannelClosed, ConnectionLost, decode, encode
from redrive.transports.rabbitmq.methods import Channel as Methods

if TYPE_CHECKING:
    from collections.abc import Callable

    from pamqp.base import Frame

    from redrive.transports.rabbitmq.connection import Connection

log = structlog.get_logger("redrive.rabbitmq")


class Listener(Protocol):
    """Whom a channel tells what nobody has asked for. One that does not expect it ignores it."""

    def delivered(self, method: bytes, properties: bytes, body: bytes) -> None: ...

    def returned(self, method: bytes, properties: bytes, body: bytes) -> None: ...

    def confirmed(self, tag: int, multiple: bool, *, taken: bool) -> None: ...  # noqa: FBT001  as on the wire

    def cancelled(self) -> None:
        """The broker ended the consumer: its queue is gone, or moves."""

    def closed(self, why: ChannelClosed | ConnectionLost) -> None:
        """Nothing more comes from here, and nothing written reaches the broker."""


class Deaf:
    """Listens to nothing: for channels that only ask."""

    def delivered(self, method: bytes, properties: bytes, body: bytes) -> None:
        pass

    def returned(self, method: bytes, properties: bytes, body: bytes) -> None:
        pass

    def confirmed(self, tag: int, multiple: bool, *, taken: bool) -> None:  # noqa: FBT001  as on the wire
        pass

    def cancelled(self) -> None:
        pass

    def closed(self, why: ChannelClosed | ConnectionLost) -> None:
        pass


class Channel:
    """Opened by `Connection.channel`."""

    def __init__(self, connection: Connection, number: int, listener: Listener) -> None:
        self.connection = connection
        self.number = number
        self.why_closed: ChannelClosed | ConnectionLost | None = None
        self._listener = listener
        self._closing = False
        self._gone = asyncio.Event()
        self._answers: deque[asyncio.Future[Any]] = deque()
        self._method = b""
        self._properties = b""
        self._missing = 0
        self._parts: list[bytes] = []

    async def call(self, method: Frame, *, within: float = 10.0) -> Any:
        """Sends a method and gives the broker's answer. Raises ChannelClosed or ConnectionLost."""
        self._require_usable()
        return await self._ask(method, within)

    async def _ask(self, method: Frame, within: float) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.connection.write(encode(method, self.number))
        self._answers.append(answer)
        try:
            async with asyncio.timeout(within):
                return await answer
        except TimeoutError:
            # This channel alone: one queue that does not answer must not take all others along. If it is the
            # whole broker, the heartbeat tells.
            silent = ChannelClosed(0, f"no answer to {method.name} within {within:g} s")
            self.abandon(silent)
            raise silent from None

    @property
    def usable(self) -> bool:
        """Whether anything may be written: behind our own close the broker takes nothing for this number."""
        return self.why_closed is None and not self._closing

    def write(self, frames: bytes) -> None:
        self._require_usable()
        self.connection.write(frames)

    async def close(self) -> None:
        """Waits until the broker has handled everything written before (R10). Safe to repeat."""
        if self.why_closed is not None:
            return
        if self._closing:  # once: the answer to a second close would reach whoever has the number by then
            await self._gone.wait()
            return
        self._closing = True
        with suppress(ChannelClosed, ConnectionLost):  # how it ends, whoever began
            await self._ask(Methods.Close(reply_code=200, reply_text="done", class_id=0, method_id=0), 10.0)

    def abandon(self, why: ChannelClosed) -> None:
        """Closes it without waiting for anything."""
        if self.why_closed is None and not self._closing:
            self._closing = True
            self.connection.write(
                encode(Methods.Close(reply_code=200, reply_text="", class_id=0, method_id=0), self.number)
            )
        self.end(why)

    def end(self, why: ChannelClosed | ConnectionLost) -> None:
        if self.why_closed is not None:
            return
        self.why_closed = why
        self._gone.set()
        if not self._closing:  # else its number is taken until the broker has answered our close
            self.connection.forget(self)
        for answer in self._answers:
            if not answer.done():
                answer.set_exception(why)
                answer.exception()  # whoever asked may have been cancelled: no complaint then
        self._answers.clear()
        self._listener.closed(why)

    # What the connection calls, a frame at a time.

    def method(self, payload: bytes) -> None:
        index = wire.INDEX.unpack_from(payload)[0]
        if self.why_closed is not None:
            self._late(index)
        elif index in (wire.DELIVER, wire.RETURN):
            self._method = payload
        elif index == wire.ACK:
            self._listener.confirmed(*wire.settled(payload), taken=True)
        elif index == wire.NACK:
            self._listener.confirmed(*wire.settled(payload), taken=False)
        else:
            self._rare(decode(payload))

    def _late(self, index: int) -> None:
        """What was on its way when the channel ended. Its number is free once our close is answered."""
        if index == wire.CLOSE_OK:
            self.connection.forget(self)
        elif index == wire.CLOSE:  # both sides at once
            self.connection.write(encode(Methods.CloseOk(), self.number))

    def header(self, payload: bytes) -> None:
        self._properties = payload[12:]
        self._missing = wire.content_size(payload)
        if not self._missing:
            self._complete(b"")

    def body(self, payload: bytes) -> None:
        size = len(payload)
        if size == self._missing and not self._parts:
            self._complete(payload)
            return
        self._parts.append(payload)
        self._missing -= size
        if self._missing <= 0:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._complete(whole)

    def _complete(self, body: bytes) -> None:
        if not self.usable:
            return  # the broker takes it back with the channel
        told: Callable[[bytes, bytes, bytes], None] = self._listener.delivered
        if wire.INDEX.unpack_from(self._method)[0] == wire.RETURN:
            told = self._listener.returned
        told(self._method, self._properties, body)

    def _rare(self, method: Any) -> None:
        if isinstance(method, Methods.Close):
            self.connection.write(encode(Methods.CloseOk(), self.number))
            self.end(ChannelClosed(method.reply_code or 0, method.reply_text))
        elif isinstance(method, Methods.CloseOk):
            self.end(ChannelClosed(200, "closed by us"))
            self.connection.forget(self)
        elif isinstance(method, Basic.Cancel):
            self._listener.cancelled()
        elif isinstance(method, Methods.Flow):
            self.connection.write(encode(Methods.FlowOk(active=method.active), self.number))
        elif self._answers:
            answer = self._answers.popleft()
            if not answer.done():
                answer.set_result(method)
        else:
            raise ConnectionLost(f"the broker sent {method.name}, which nobody had asked for")

    def _require_usable(self) -> None:
        if not self.usable:
            raise self.why_closed or ChannelClosed(200, "closed by us")
