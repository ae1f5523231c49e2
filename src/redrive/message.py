"""What travels.

A Message is a body (bytes or nothing), headers and a few facts about where it came from. Its body never
changes in its lifetime: what our producer sends is S3's envelope as JSON, what others send is whatever they
send. Retry count and last error are laid over the body (`Overlay`), so a message that failed five times is
still, byte for byte, the message that was sent; `to_json` shows both together in S3's layout.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

VERSION = "1.0"
MAX_ENVELOPE_BYTES = 16 * 1024 * 1024
ERROR_TEXT_BUDGET = 1024
ERROR_TRACE_BUDGET = 4096

Headers = tuple[tuple[str, Any], ...]


class ErrorNote(msgspec.Struct, frozen=True):
    """S3's `error`: the last failure, small enough to travel with the message."""

    message: str
    code: str
    trace: str


class Envelope(msgspec.Struct, frozen=True):
    """S3's layout, field for field and in its order."""

    message_id: str
    timestamp: str
    version: str
    source: str
    queue: str
    data: msgspec.Raw
    metadata: msgspec.Raw
    error: ErrorNote | None
    retry_count: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    """Beyond any real count it is somebody else's layout, and would not fit where counts are kept."""


class Overlay(msgspec.Struct, frozen=True):
    error: ErrorNote | None
    retry_count: int


_RESET = Overlay(None, 0)
ENVELOPED = b'"message_id"'
"""In every envelope: to look for it costs a tenth of decoding what is none."""
_encoder = msgspec.json.Encoder()
_envelope_decoder = msgspec.json.Decoder(Envelope)


class Message(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Immutable. `with_*` give a new one; the id stays the same for the whole life of the message."""

    id: str
    queue: str
    body: bytes | None
    sent_at: datetime
    headers: Headers = ()
    key: bytes | None = None
    source: str | None = None
    overlay: Overlay | None = None
    properties: bytes | None = None
    """Everything a foreign broker said of it beside the body, in that broker's own encoding (G2). Only the driver
    that wrote it reads it; `headers`, `id` and `source` are what it made of it. None: the message was made here.
    """

    def __repr__(self) -> str:
        """Without body, headers and key: a payload must not reach a log or an error by way of a repr."""
        size = "no body" if self.body is None else f"{len(self.body)} bytes"
        return f"Message(id={self.id!r}, queue={self.queue!r}, {size}, retry_count={self.retry_count})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("queue", self.queue)]

    @classmethod
    def create(
        cls,
        *,
        id: str,  # noqa: A002  the field's own name
        sent_at: datetime,
        queue: str,
        data: Any,
        source: str = "",
        metadata: dict[str, Any] | None = None,
        headers: Headers = (),
        key: bytes | None = None,
    ) -> Message:
        """A message of ours: `data` and `metadata` become S3's envelope. Not encodable: TypeError."""
        envelope = Envelope(
            message_id=id,
            timestamp=sent_at.astimezone(UTC).isoformat(timespec="milliseconds"),
            version=VERSION,
            source=source,
            queue=queue,
            data=_encoded("data", data),
            metadata=_encoded("metadata", metadata or {}),
            error=None,
            retry_count=0,
        )
        return cls(
            id=id,
            queue=queue,
            body=_encoder.encode(envelope),
            sent_at=sent_at,
            headers=headers,
            key=key,
            source=source or None,
        )

    @property
    def envelope(self) -> Envelope | None:
        """The body read as S3's envelope, or None for a foreign message. Never raises. Read once."""
        try:
            found: Envelope | None = self.__dict__["envelope"]
        except KeyError:  # by hand: Python 3.11's cached_property takes a lock, for every message
            found = self.__dict__["envelope"] = self._read_envelope()
        return found

    def _read_envelope(self) -> Envelope | None:
        body = self.body
        if body is None or ENVELOPED not in body or len(body) > MAX_ENVELOPE_BYTES or not body.startswith(b"{"):
            return None
        try:
            return _envelope_decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None

    @property
    def payload(self) -> bytes | None:
        """The bytes a handler is interested in: the envelope's `data`, or a foreign message's whole body."""
        return self.body if self.envelope is None else bytes(self.envelope.data)

    @property
    def data(self) -> Any:
        """The payload as Python values. Raises ValueError if it is not JSON."""
        return read_json(self.payload)

    @property
    def metadata(self) -> dict[str, Any]:
        """The envelope's metadata. Empty for a foreign message, and for metadata that is no readable object."""
        try:
            found = {} if self.envelope is None else read_json(bytes(self.envelope.metadata))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def version(self) -> str | None:
        return None if self.envelope is None else self.envelope.version

    @property
    def error(self) -> ErrorNote | None:
        if self.overlay is not None:
            return self.overlay.error
        return None if self.envelope is None else self.envelope.error

    @property
    def retry_count(self) -> int:
        if self.overlay is not None:
            return self.overlay.retry_count
        return 0 if self.envelope is None else self.envelope.retry_count

    @property
    def correlation_id(self) -> str | None:
        found = self.metadata.get("correlation_id")
        return found if isinstance(found, str) else None

    def with_error(self, message: str, code: str, trace: str) -> Message:
        """The last failure in S3's form, within a size budget (SD11). A trace keeps its end: what was raised."""
        return self.with_failure(message, code, trace, retry_count=self.retry_count)

    def with_failure(self, message: str, code: str, trace: str, *, retry_count: int) -> Message:
        """As `with_error`, counted as well."""
        note = ErrorNote(
            message=cut(message, ERROR_TEXT_BUDGET), code=cut(code, 256), trace=_end(trace, ERROR_TRACE_BUDGET)
        )
        return msgspec.structs.replace(self, overlay=Overlay(note, retry_count))

    def with_incremented_retry(self) -> Message:
        return msgspec.structs.replace(self, overlay=Overlay(self.error, self.retry_count + 1))

    def with_reset(self, *, headers: Headers | None = None) -> Message:
        """As if it had never failed: no error, no retries, the same id and the same bytes; other headers, if they
        are given.
        """
        kept = self.headers if headers is None else headers
        reset = msgspec.structs.replace(self, overlay=_RESET, headers=kept)
        reset.__dict__.update(self.__dict__)  # its body, and so its envelope if that was read, is the same
        return reset

    def with_headers(self, headers: Headers) -> Message:
        return msgspec.structs.replace(self, headers=headers)

    def to_json(self) -> bytes:
        """S3's envelope with the current error and retry count.

        `data` and `metadata` keep their bytes. A foreign body is shown as its JSON, its text, or base64.
        """
        if self.envelope is not None:
            current = (self.error, self.retry_count)
            if self.body is not None and current == (self.envelope.error, self.envelope.retry_count):
                return self.body
            shown = msgspec.structs.replace(self.envelope, error=self.error, retry_count=self.retry_count)
            return _encoder.encode(shown)
        return _encoder.encode(
            Envelope(
                message_id=printable(self.id),
                timestamp=self.sent_at.astimezone(UTC).isoformat(timespec="milliseconds"),
                version=VERSION,
                source=printable(self.source or ""),
                queue=printable(self.queue),
                data=msgspec.Raw(_view(self.body)),
                metadata=msgspec.Raw(b"{}"),
                error=self.error,
                retry_count=self.retry_count,
            )
        )


def read_json(payload: bytes | None) -> Any:
    """JSON as Python values, big integers exact. Raises ValueError for what is not JSON or nests too deep."""
    if payload is None:
        raise ValueError("the message has no body")
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        try:  # what msgspec refuses and Python accepts: lone surrogates in escapes, 1e400
            return json.loads(payload)
        except (ValueError, RecursionError):
            raise ValueError(f"the payload is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("the payload nests too deep to be read as JSON") from None


def cut(text: str, budget: int) -> str:
    """At most `budget` characters of the text, then a marker that says how many are gone."""
    if len(text) <= budget and text.isascii():
        return text
    safe = printable(text)
    return safe if len(safe) <= budget else f"{safe[:budget]}...[{len(safe) - budget} characters cut]"


def _end(text: str, budget: int) -> str:
    """As `cut`, from the other side."""
    safe = printable(text)
    return safe if len(safe) <= budget else f"[{len(safe) - budget} characters cut]...{safe[-budget:]}"


def printable(text: str) -> str:
    """Text that can be encoded as UTF-8: lone surrogates become escapes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encoded(what: str, value: Any) -> msgspec.Raw:
    try:
        return msgspec.Raw(_encoder.encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the {what} cannot be written as JSON: {error}") from error


def _view(body: bytes | None) -> bytes:
    if body is None:
        return b"null"
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    else:
        return body
    try:
        return _encoder.encode(body.decode("utf-8"))
    except UnicodeDecodeError:
        return _encoder.encode({"base64": base64.b64encode(body).decode("ascii")})
