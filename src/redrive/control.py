"""The control headers of a redriven message, signed so that a producer cannot forge them (TH5).

Anybody can write `x-redrive-letter` into a message. Only a ticket whose signature fits is believed; every
other one is treated as if it were not there.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import msgspec

from redrive.headers import header

if TYPE_CHECKING:
    from redrive.message import Headers

REDRIVE_ID = "x-redrive-id"
LETTER = "x-redrive-letter"
GENERATION = "x-redrive-generation"
SIGNATURE = "x-redrive-sig"
OURS = frozenset({REDRIVE_ID, LETTER, GENERATION, SIGNATURE})


class RedriveTicket(msgspec.Struct, frozen=True):
    """Says that this copy of a message is one redrive of one letter, to one queue."""

    redrive_id: str
    letter_id: str
    generation: int
    target: str


def stamp(headers: Headers, ticket: RedriveTicket, key: bytes) -> Headers:
    """The user's headers with our four at the end; an older ticket is replaced."""
    return (
        *strip(headers),
        (GENERATION, ticket.generation),  # in the order of their names: some brokers sort them
        (REDRIVE_ID, ticket.redrive_id),
        (LETTER, ticket.letter_id),
        (SIGNATURE, _sign(ticket, key)),
    )


def read_ticket(headers: Headers, target: str, key: bytes) -> RedriveTicket | None:
    """The ticket, if there is one, it names this queue, and its signature is ours."""
    signature = header(headers, SIGNATURE)
    redrive_id, letter_id = header(headers, REDRIVE_ID), header(headers, LETTER)
    generation = header(headers, GENERATION)
    if not (isinstance(redrive_id, str) and isinstance(letter_id, str) and isinstance(signature, str)):
        return None
    if not isinstance(generation, int) or isinstance(generation, bool) or not 0 <= generation < 2**31:
        return None
    ticket = RedriveTicket(redrive_id, letter_id, generation, target)
    expected = _sign(ticket, key).encode()
    given = signature.encode("utf-8", "surrogatepass")
    return ticket if hmac.compare_digest(expected, given) else None


def carries_ticket(headers: Headers) -> bool:
    return any(name == SIGNATURE for name, _ in headers)


def strip(headers: Headers) -> Headers:
    """The headers as the producer sent them."""
    return tuple([pair for pair in headers if pair[0] not in OURS]) if headers else headers


def _sign(ticket: RedriveTicket, key: bytes) -> str:
    parts = (ticket.redrive_id, ticket.letter_id, str(ticket.generation), ticket.target)
    # Each part carries its length, so that no two tickets sign the same bytes.
    raw = [part.encode("utf-8", "surrogatepass") for part in parts]
    text = b"".join([len(part).to_bytes(4) + part for part in raw])
    return hmac.digest(key, text, "sha256").hex()
