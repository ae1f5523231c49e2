"""JSON on its way through a person's editor: shown in lines, checked, and written back as tersely as it came.

Numbers, escapes and the order of keys are never rewritten, so that only what the person touched changes.
"""

from __future__ import annotations

import json

import msgspec

from redrive.cli.payload_view import pretty_json
from redrive.errors import UsageError

_COMPACT, _ONE_LINE = -1, 0


def is_json(content: bytes | None) -> bool:
    return content is not None and _problem(content) is None


def check_json(content: bytes, *, remedy: str) -> None:
    problem = _problem(content)
    if problem is not None:
        raise UsageError(f"this is not JSON: {problem}", remedy=remedy)


def draft_of(content: bytes) -> bytes:
    """In lines for the eye; as it is if it is too long or too deep for that."""
    pretty = pretty_json(content)
    return content if pretty is None else f"{pretty}\n".encode()


def in_the_style_of(before: bytes, after: bytes) -> bytes:
    """Without spaces, or on one line, if the original was; else as the person wrote it."""
    for style in (_COMPACT, _ONE_LINE):
        if _formatted(before, style) == before:
            return _formatted(after, style) or after
    return after.rstrip(b"\n")


def _formatted(content: bytes, style: int) -> bytes | None:
    try:
        return msgspec.json.format(content, indent=style)
    except (msgspec.DecodeError, RecursionError):
        return None


def _problem(content: bytes) -> str | None:
    """What is wrong with it and where, without a piece of it."""
    try:
        json.loads(content.decode(), parse_int=str, parse_float=str, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    except RecursionError:
        return "it nests too deep"
    except ValueError as error:
        return str(error)
    return None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
