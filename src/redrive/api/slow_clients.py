"""Connections that send nothing, or so slowly that they would be there for ever (slow loris), are ended, and so
are those that do not read what they asked for.

uvicorn itself waits for a request's headers and body as long as the client likes; a byte now and then is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True)
class Patience:
    """Seconds, and how many connections there are at most."""

    headers: float
    """From the connection's beginning, or the first byte of a later request, until its headers are there."""
    body: float
    """From there until the body is there, whether or not somebody still reads it. Also how long a client may read
    nothing of an answer that waits for it.
    """
    connections: int


class PatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn has it, for clients that get on with it."""

    def __init__(self, *, patience: Patience, **given: Any) -> None:
        super().__init__(**given)
        self._patience = patience
        self._awaited: object = None
        self._end: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > self._patience.connections:
            transport.abort()
        else:
            self._await(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await(self.conn.their_state)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # A later request whose first bytes are here already: for one that has not begun, uvicorn has a limit.
        if self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]:
            self._await(self.conn.their_state)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self._patience.body, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read()

    def timeout_keep_alive_handler(self) -> None:
        """Closed, a connection waits until its last bytes are read: not for ever."""
        super().timeout_keep_alive_handler()
        self._unread = self._unread or self.loop.call_later(self._patience.body, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None)
        self._read()
        super().connection_lost(exc)

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _await(self, state: object) -> None:
        """Another part of the request is awaited than before: it has time of its own."""
        if state is self._awaited:
            return
        self._awaited = state
        if self._end is not None:
            self._end.cancel()
        limits: dict[object, float] = {h11.IDLE: self._patience.headers, h11.SEND_BODY: self._patience.body}
        seconds = limits.get(state)
        self._end = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
