"""A message on the wire as its sections: what a broker rewrites is decoded, what is the sender's stays bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from proton import Data, Described, symbol, ulong

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION, DATA = range(0x70, 0x76)
BATCH = 0x80013700
"""The message format of several messages in one transfer: each data section is a whole message."""
_MESSAGE_ID, _SESSION_ID = 0, 10
_TTL = 2
_DESCRIBED_BY_NUMBER = b"\x00\x53"


@dataclass(frozen=True)
class Content:
    """What a sender has given. `properties`, `application` and `body` are whole sections, byte for byte."""

    header: tuple[Any, ...] = ()
    annotations: dict[Any, Any] = field(default_factory=dict)
    properties: bytes = b""
    application: bytes = b""
    body: bytes = b""

    @property
    def message_id(self) -> Any:
        return self._property(_MESSAGE_ID)

    @property
    def session_id(self) -> str | None:
        found = self._property(_SESSION_ID)
        return None if found is None else str(found)

    @property
    def seconds_to_live(self) -> float | None:
        found = self.header[_TTL] if len(self.header) > _TTL else None
        return None if found is None else int(found) / 1000

    @property
    def application_properties(self) -> dict[Any, Any]:
        return dict(value_of(self.application)) if self.application else {}

    @property
    def data(self) -> bytes:
        """The body, if it is data."""
        return b"".join(bytes(value_of(raw)) for code, raw in split(self.body) if code == DATA)

    def with_application(self, more: dict[str, Any]) -> Content:
        return replace(self, application=section(APPLICATION, {**self.application_properties, **more}))

    def _property(self, at: int) -> Any:
        found = value_of(self.properties) if self.properties else []
        return found[at] if len(found) > at else None


def read(encoded: bytes) -> Content:
    """The delivery annotations are gone: they are for the next hop alone."""
    content = Content()
    for code, raw in split(encoded):
        if code == HEADER:
            content = replace(content, header=tuple(value_of(raw)))
        elif code == ANNOTATIONS:
            content = replace(content, annotations=dict(value_of(raw)))
        elif code == PROPERTIES:
            content = replace(content, properties=raw)
        elif code == APPLICATION:
            content = replace(content, application=raw)
        elif code != DELIVERY_ANNOTATIONS:
            content = replace(content, body=content.body + raw)
    return content


def write(content: Content, *, header: list[Any], annotations: dict[str, Any], hop: dict[str, Any]) -> bytes:
    """As a broker hands it out: `annotations` over the sender's own, `hop` for the receiver alone."""
    seen = content.annotations | {symbol(name): value for name, value in annotations.items()}
    parts = [section(HEADER, header)]
    if hop:
        parts.append(section(DELIVERY_ANNOTATIONS, {symbol(name): value for name, value in hop.items()}))
    parts += [section(ANNOTATIONS, seen), content.properties, content.application, content.body]
    return b"".join(parts)


def split_batch(encoded: bytes) -> list[bytes]:
    return [value_of(raw) for code, raw in split(encoded) if code == DATA]


def split(encoded: bytes) -> Iterator[tuple[int, bytes]]:
    """Each section: its code, and all its bytes."""
    at = 0
    while at < len(encoded):
        assert encoded.startswith(_DESCRIBED_BY_NUMBER, at), "a section that the emulator does not know"
        size = Data().decode(encoded[at:])
        yield encoded[at + len(_DESCRIBED_BY_NUMBER)], encoded[at : at + size]
        at += size


def decode(encoded: bytes) -> Any:
    """The first value."""
    data = Data()
    data.decode(encoded)
    data.rewind()
    data.next()
    return _kept(data.get_object())


def value_of(encoded_section: bytes) -> Any:
    return decode(encoded_section).value


def _kept(value: Any) -> Any:
    """Proton's bytes are views of memory that goes with its data."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kept(item) for item in value]
    if isinstance(value, Described):
        return Described(value.descriptor, _kept(value.value))
    return value


def section(code: int, value: Any) -> bytes:
    data = Data()
    data.put_object(Described(ulong(code), value))
    return bytes(data.encode())
