"""One attempt that went wrong, captured cheaply and told in full.

`traceback.format_exception` would be four fifths of what a failure costs, so a Failure keeps frames and
writes the text when somebody looks (`Failure.trace`).
"""

from __future__ import annotations

import linecache
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import msgspec

from redrive.message import cut, printable

if TYPE_CHECKING:
    from types import TracebackType

TEXT_BUDGET = 8192
MAX_FRAMES = 64
MAX_CHAIN = 5
_LINE_BUDGET = 512
UNKNOWN_HANDLER = "unknown"
"""Of failures that other programs told of."""


class FailureKind(StrEnum):
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    CRITICAL = "critical"


class Frame(msgspec.Struct, frozen=True, array_like=True):
    file: str
    line: int
    function: str
    source: str
    own: bool
    """Whether the frame is the team's code: neither Python's, nor a library's, nor ours."""


class Raised(msgspec.Struct, frozen=True, array_like=True):
    """One exception of a chain. `link` says how it led to the one after it: cause, context, member or nothing."""

    type: str
    text: str
    frames: tuple[Frame, ...]
    link: str = ""


class Host(msgspec.Struct, frozen=True):
    """S2's EnvironmentMetadata: where the attempt ran."""

    name: str = ""
    process: int = 0
    app: str = ""
    app_version: str = ""
    environment: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    attempt: int
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    kind: FailureKind
    handler: str
    chain: Annotated[tuple[Raised, ...], msgspec.Meta(min_length=1)]
    """Root cause first, what the handler raised last."""
    host: Host = Host()

    @property
    def type(self) -> str:
        return self.chain[-1].type

    @property
    def text(self) -> str:
        return self.chain[-1].text

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.chain[-1].frames

    @property
    def trace(self) -> str:
        """The stack trace as Python prints it."""
        return "\n".join(_told(raised) for raised in self.chain)


def capture(
    error: BaseException, *, attempt: int, at: datetime, kind: FailureKind, handler: str, host: Host
) -> Failure:
    return Failure(attempt=attempt, at=at, kind=kind, handler=handler, chain=_chain(error), host=host)


def type_name(cls: type[BaseException]) -> str:
    module = cls.__module__
    return cls.__qualname__ if module in {"builtins", "__main__"} else f"{module}.{cls.__qualname__}"


def _chain(error: BaseException) -> tuple[Raised, ...]:
    found: list[Raised] = []
    seen: set[int] = set()
    current: BaseException | None = error
    link = ""
    while current is not None and id(current) not in seen and len(found) < MAX_CHAIN:
        seen.add(id(current))
        found.append(_raised(current, link))
        if isinstance(current, BaseExceptionGroup):  # its own text says only how many there are
            current, link = current.exceptions[0], "member"
        elif current.__cause__ is not None:
            current, link = current.__cause__, "cause"
        elif current.__suppress_context__:
            current = None
        else:
            current, link = current.__context__, "context"
    return tuple(reversed(found))


def _raised(error: BaseException, link: str) -> Raised:
    try:
        text = cut(str(error), TEXT_BUDGET)
    except Exception:  # noqa: BLE001  an exception whose __str__ fails is still a failure to record
        text = "<its text could not be made>"
    return Raised(printable(type_name(type(error))), text, _frames(error.__traceback__), link)


def _frames(trace: TracebackType | None) -> tuple[Frame, ...]:
    raw: list[tuple[str, int, str]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        raw.append((code.co_filename, trace.tb_lineno or 0, code.co_qualname))
        trace = trace.tb_next
    raw = raw[_machinery(raw) :]
    if len(raw) > MAX_FRAMES:  # a recursion: both ends tell the story, the middle repeats it
        half = MAX_FRAMES // 2
        raw[half:-half] = [(f"<{len(raw) - MAX_FRAMES} frames left out>", 0, "...")]
    return tuple(_frame(*each) for each in raw)


def _machinery(raw: list[tuple[str, int, str]]) -> int:
    """How many frames at the top are only ours and Python's, on the way to the handler; 0 if all of them are."""
    for place, (file, _, _) in enumerate(raw):
        if _is_own(file) or not file.startswith((_HERE, _PYTHON)):
            return place
    return 0


@lru_cache(maxsize=4096)  # what fails, fails at the same places again and again
def _frame(file: str, line: int, function: str) -> Frame:
    try:
        source = printable(linecache.getline(file, line).strip()[:_LINE_BUDGET])
    except (ValueError, SyntaxError):  # a generated name that no file can have, a file that is no source
        source = ""
    return Frame(printable(file), line, printable(function), source, _is_own(file))


_HERE = __file__.rpartition("/")[0] + "/"
_PYTHON = linecache.__file__.rpartition("/")[0] + "/"  # the folder of the standard library


@lru_cache(maxsize=4096)
def _is_own(file: str) -> bool:
    if file.startswith(_HERE + "demo/"):
        return True  # the demonstration shop stands for a team's code
    return not (file.startswith((_HERE, "<", _PYTHON)) or "/site-packages/" in file or "/dist-packages/" in file)


LINKS = {
    "cause": "\nThe above exception was the direct cause of the following exception:\n",
    "context": "\nDuring handling of the above exception, another exception occurred:\n",
    "member": "\nThe above exception is the first one of the following group:\n",
}


def _told(raised: Raised) -> str:
    lines = ["Traceback (most recent call last):"] if raised.frames else []
    for frame in raised.frames:
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
        if frame.source:
            lines.append(f"    {frame.source}")
    lines.append(f"{raised.type}: {raised.text}" if raised.text else raised.type)
    if raised.link in LINKS:
        lines.append(LINKS[raised.link])
    return "\n".join(lines)


class _Named(msgspec.Struct, frozen=True):
    identity: str
    failures: tuple[Failure, ...]


_trail_encoder = msgspec.msgpack.Encoder()
_trail_decoder = msgspec.msgpack.Decoder(tuple[Failure, ...] | _Named)


def encode_trail(failures: tuple[Failure, ...], budget: int, *, identity: str = "") -> bytes:
    """The failures so far, for travelling with a retry, in at most `budget` bytes. Over budget, the oldest lose
    their frames first, then go altogether: the newest are what a person reads. `identity` is that of the letter,
    for a copy of it.
    """
    kept = failures
    encoded = _encode(kept, identity)
    for index in range(len(failures)):
        if len(encoded) <= budget:
            break
        kept = (*kept[:index], _without_frames(kept[index]), *kept[index + 1 :])
        encoded = _encode(kept, identity)
    while len(encoded) > budget and kept:
        kept = kept[1:]
        encoded = _encode(kept, identity)
    return encoded if len(encoded) <= budget else b""


def decode_trail(trail: bytes | None) -> tuple[Failure, ...]:
    """Total: a trail that cannot be read is an empty one, for it came over the wire."""
    told = _decode(trail)
    return told.failures if isinstance(told, _Named) else told


def attempts_in(trail: bytes | None) -> tuple[Failure, ...]:
    """The failed attempts that a retry follows. A copy of a letter starts afresh: its failures are over."""
    told = _decode(trail)
    return () if isinstance(told, _Named) else told


def identity_in(trail: bytes | None) -> str:
    """Whose copy it travels with; empty if it does not say."""
    told = _decode(trail)
    return told.identity if isinstance(told, _Named) else ""


def _encode(failures: tuple[Failure, ...], identity: str) -> bytes:
    return _trail_encoder.encode(_Named(identity, failures) if identity else failures)


def _decode(trail: bytes | None) -> tuple[Failure, ...] | _Named:
    if not trail:
        return ()
    try:
        told: tuple[Failure, ...] | _Named = _trail_decoder.decode(trail)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ()
    return told


def _without_frames(failure: Failure) -> Failure:
    chain = tuple(msgspec.structs.replace(raised, frames=()) for raised in failure.chain[-1:])
    return msgspec.structs.replace(failure, chain=chain)
