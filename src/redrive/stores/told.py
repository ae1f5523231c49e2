"""A Failure as it is stored: whole, but bounded, as JSON that the database can read too (dlq_view).

Part of it may have come over the wire, so this is total.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

import msgspec

from redrive.failure import Failure, Host, Raised
from redrive.message import cut, printable
from redrive.stores.columns import microseconds, moment

BUDGET = 256 * 1024
"""Bytes of one failure. What `redrive.failure.capture` makes stays below; a forged trail need not."""

_SHORT, _LONG = 256, 1024

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Failure)
_former_decoder = msgspec.msgpack.Decoder(Failure)  # what the first version wrote


def tell(failure: Failure) -> bytes:
    """Over budget: without stack traces, then with the last exception's text cut."""
    if failure.at.tzinfo is not UTC:  # JSON rounds an offset to minutes
        failure = msgspec.structs.replace(failure, at=moment(microseconds(failure.at)))
    encoded = _encode(failure)
    if len(encoded) > BUDGET:
        encoded = _encode(_brief(failure))
    return encoded


def retell(stored: bytes) -> Failure:
    return (_decoder if stored.startswith(b"{") else _former_decoder).decode(stored)


def _encode(failure: Failure) -> bytes:
    try:
        return _encoder.encode(failure)
    except UnicodeEncodeError:  # a name with lone surrogates
        return _encoder.encode(_printable(failure))


def _brief(failure: Failure) -> Failure:
    last = failure.chain[-1]
    host = failure.host
    return msgspec.structs.replace(
        failure,
        handler=cut(failure.handler, _SHORT),
        chain=(Raised(cut(last.type, _SHORT), cut(last.text, _LONG), ()),),
        host=Host(
            name=cut(host.name, _SHORT),
            process=host.process,
            app=cut(host.app, _SHORT),
            app_version=cut(host.app_version, _SHORT),
            environment=cut(host.environment, _SHORT),
        ),
    )


def _printable(value: Any) -> Any:
    if type(value) is str:
        return printable(value)
    if isinstance(value, tuple):
        return tuple(_printable(each) for each in value)
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _printable(getattr(value, name)) for name in value.__struct_fields__})
    return value
