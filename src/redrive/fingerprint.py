"""Puts failures of one cause together: the exception's type, the first frame of the team's own code, and the
text with everything that varies taken out. google-re2, and bounded input: the text comes from the attacker.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

from redrive.dead_letter import Fingerprint

if TYPE_CHECKING:
    from redrive.failure import Failure, Frame, Raised

MAX_INPUT = 8192
MAX_TITLE = 300

# Python's own, which is quicker by far and safe here: of fixed length, so it never looks at a character often.
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.ASCII | re.IGNORECASE)
_DIGITS = str.maketrans("123456789", "000000000")

# In this order: what is longer and more particular is replaced before its parts could be. Before each stands what
# a text must hold somewhere for the pattern to find anything: most texts hold little of it, and that look costs a
# hundredth of the search.
_VARYING = [
    (re.compile(needed).search, re2.compile(pattern), replacement)
    for needed, pattern, replacement in (
        ("@", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
        (
            "-",
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?",
            "<time>",
        ),
        # A quote opens behind a space or a bracket: "can't … won't" is no quotation. One that was cut off never
        # closes, and is a value all the same; one behind a backslash is a part of the value (`repr`).
        ("'", r"(^|[\s(\[{=:,])'(?:[^'\\\n]|\\.)*(?:'|$)", r"\1<value>"),
        ('"', r'"(?:[^"\\\n]|\\.)*(?:"|$)', "<value>"),
        ("[“«]", r"“[^”\n]*(?:”|$)|«[^»\n]*(?:»|$)", "<value>"),
        (r"\.", r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b", "<address>"),
        (r"\[", r"(?i)\[[0-9a-f]*:[0-9a-f:.]*\](?::\d{1,5})?", "<address>"),
        ("[-_#]", r"(?i)\b[a-z]+(?:[-_][a-z]+)*[-_#]\d[\w-]*", "<id>"),
        ("[0-9]", r"(?i)[-+]?\b\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(%|[mµun]?s|min|[hdx]|[kmgt]?i?b)?\b", r"<n>\1"),
        ("[0-9]", r"\w*\d\w*", "<id>"),  # what still holds a digit: hexadecimal, base 32, base 62
        (">[,:;]", r"<[a-z]+>(?:[,:;] ?<[a-z]+>)+", "<list>"),
        ("[\t\n\f\r]|  ", r"\s+", " "),
    )
]


def fingerprint(failure: Failure, *, queue: str) -> Fingerprint:
    """The group of a letter whose last failure this is."""
    text = normalise(failure.text)
    behind = [f"{raised.type} {_place(raised)}" for raised in failure.chain[:-1]]  # a wrapper is not the cause
    parts = (queue, failure.handler, failure.type, _place(failure.chain[-1]), text, *behind)
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    title = f"{failure.type.rpartition('.')[2]}: {text}" if text else failure.type.rpartition(".")[2]
    return Fingerprint(id=digest[:32], title=title[:MAX_TITLE])


def normalise(text: str) -> str:
    """Numbers, ids, addresses, times and quoted values replaced by what they are."""
    result = text[:MAX_INPUT].encode("utf-8", "backslashreplace").decode("utf-8")
    if "-" in result:
        result = _UUID.sub("<uuid>", result)
    # No pattern tells one digit from another, and none is left in the end.
    return _normalised(result.translate(_DIGITS))


@lru_cache(maxsize=512)  # what fails, fails with the same words again and again
def _normalised(text: str) -> str:
    for may_hold, pattern, replacement in _VARYING:
        if may_hold(text):
            text = pattern.sub(replacement, text)
    return str(text).strip()


def cause(failure: Failure) -> str:
    """What failed and where, in words of the code alone: nothing of a message is in it, so it may be logged."""
    frame = _telling_frame(failure.chain[-1])
    name = failure.type.rpartition(".")[2]
    return name if frame is None else f"{name} in {_function(frame)}"


def _place(raised: Raised) -> str:
    frame = _telling_frame(raised)
    # The line's text, not its number: a group survives edits above the line, and tells two lines apart.
    return "" if frame is None else f"{_function(frame)}:{frame.source or frame.line}"


def _telling_frame(raised: Raised) -> Frame | None:
    """The innermost frame of the team's code, or of any if none is theirs."""
    for frame in reversed(raised.frames):
        if frame.own:
            return frame
    return raised.frames[-1] if raised.frames else None


def _function(frame: Frame) -> str:
    return f"{frame.file.rpartition('/')[2]}:{frame.function}"
