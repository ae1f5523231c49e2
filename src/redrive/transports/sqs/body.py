"""Bodies as SQS takes them: text of XML's characters, never empty. What is none says so in an attribute that
consumers of any language can read: `x-redrive-body`.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib

NAME = "x-redrive-body"
NOTHING, EMPTY, BINARY, SMALLER = "none", "empty", "base64", "zlib+base64"
_PLACEHOLDER = "-"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST = 64 * 2**20
"""Bytes that a body is unpacked to, at most: a mebibyte can be made to hold a gibibyte."""


def is_text(value: str) -> bool:
    """SQS keeps it as it is: it refuses some characters, and once replaced them without a word."""
    return bool(value) and _FORBIDDEN.search(value) is None


def written(body: bytes | None) -> tuple[str, str]:
    """The body for SQS, and how it is written; the latter is empty if it is as it was."""
    if body is None:
        return _PLACEHOLDER, NOTHING
    if not body:
        return _PLACEHOLDER, EMPTY
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""
    return (text, "") if is_text(text) else (base64.b64encode(body).decode(), BINARY)


def written_smaller(body: bytes | None) -> tuple[str, str]:
    """As `written`, in less room if there is less, but for nobody's eyes."""
    usual = written(body)
    if not body or len(body) > _MOST:
        return usual
    small = base64.b64encode(zlib.compress(body)).decode()
    return (small, SMALLER) if len(small) < len(usual[0].encode()) else usual


def read(text: str, how: str) -> bytes | None:
    """Total: what cannot be read as it says is taken as it is."""
    if how == NOTHING:
        return None
    if how == EMPTY:
        return b""
    try:
        if how == BINARY:
            return base64.b64decode(text, validate=True)
        if how == SMALLER:
            return _unpacked(base64.b64decode(text, validate=True))
    except (binascii.Error, zlib.error, ValueError):
        pass
    return text.encode("utf-8", "surrogatepass")


def _unpacked(packed: bytes) -> bytes:
    reader = zlib.decompressobj()
    body = reader.decompress(packed, _MOST)
    if not reader.eof:
        raise ValueError("cut off, or larger than anything that was packed here")
    return body
