"""What a broker said of a message when it was first read, as bytes for `Message.properties`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from redrive.message import Message

T = TypeVar("T", bound=msgspec.Struct)
_encoder = msgspec.msgpack.Encoder()


class OriginBytes(Generic[T]):
    """They begin with their broker's `magic`: a driver takes none of another's for its own."""

    def __init__(self, magic: bytes, kind: type[T]) -> None:
        self._magic = magic
        self._decoder = msgspec.msgpack.Decoder(kind)

    def encode(self, origin: T) -> bytes:
        return self._magic + _encoder.encode(origin)

    def of(self, message: Message) -> T | None:
        """None for a message that was made here, or came from a broker of another kind."""
        return None if message.properties is None else self.decode(message.properties)

    def decode(self, properties: bytes) -> T | None:
        if not properties.startswith(self._magic):
            return None
        try:
            return self._decoder.decode(properties[len(self._magic) :])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
