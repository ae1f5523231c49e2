"""Which format each transfer says it has: only that number tells a batch from a message, and proton hides it."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from support.servicebus.sections import decode

_ATTACH, _TRANSFER = 0x12, 0x14
_HEAD, _PROTOCOL_HEADER = 8, b"AMQP"
_AMQP_FRAME = 0
_DATA_OFFSET, _TYPE, _CHANNEL = 4, 5, 6
"""Of a frame's bytes."""
_FORMAT, _MORE = 3, 5
"""Of a transfer's fields."""


class Formats:
    """Fed with all that a client sends."""

    def __init__(self) -> None:
        self._rest = b""
        self._links: dict[tuple[int, int], str] = {}
        self._current: dict[str, int] = {}
        self._found: dict[str, deque[int]] = defaultdict(deque)

    def next_of(self, link: str) -> int:
        """The format of the next message on the link of this name."""
        return self._found[link].popleft()

    def feed(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= _HEAD:
            if self._rest.startswith(_PROTOCOL_HEADER):
                self._rest = self._rest[_HEAD:]
                continue
            size = int.from_bytes(self._rest[:4])
            if len(self._rest) < size:
                return
            frame, self._rest = self._rest[:size], self._rest[size:]
            self._look_at(frame)

    def _look_at(self, frame: bytes) -> None:
        inside = frame[4 * frame[_DATA_OFFSET] :]
        if frame[_TYPE] != _AMQP_FRAME or not inside:
            return
        channel = int.from_bytes(frame[_CHANNEL:_HEAD])
        performative = decode(inside)
        fields = performative.value
        if performative.descriptor == _ATTACH:
            self._links[channel, int(fields[1])] = str(fields[0])
        elif performative.descriptor == _TRANSFER:
            self._count(self._links[channel, int(fields[0])], [*fields, *[None] * (_MORE + 1)])

    def _count(self, link: str, fields: list[Any]) -> None:
        """One for each message, at the last of its frames; the first says its format, the others may."""
        form, more = fields[_FORMAT], fields[_MORE]
        if form is not None:
            self._current[link] = int(form)
        if not more:
            self._found[link].append(self._current.pop(link, 0))
