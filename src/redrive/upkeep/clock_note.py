"""What the clock said at the last run, so that a clock that jumped purges nothing (F21).

Since one start of the machine, the wall clock and the time since that start must have gone on alike. Across starts
they cannot be compared, and the newest letter and the last run have to do: a clock far ahead of both may be right
(a store where nothing failed for months) or wrong. In doubt nothing is purged and the clock is noted; a second
run, which can compare, goes ahead if the clock has gone on as it should.

A run that nobody has asked for notes no clock that it doubts, and so doubts it again: only a person's run confirms
a jump. Nor does it believe the newest letter, which the same clock may have dated, where an earlier run has left a
note.
"""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from redrive.duration import short
from redrive.errors import Refused, Unreachable
from redrive.upkeep.spool_segment import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable

JUMP = 3600.0
_SHORTEST_SILENCE = 86400.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_REMEDY = "if the date is right, run it again: the second run compares with this one"
_ASK = "if the date is right, say so: run `redrive retention run` twice on this machine"


class Uptime(msgspec.Struct, frozen=True):
    boot: str
    """Names one start of the machine; empty where nobody knows it."""
    seconds: float
    """Since then, sleep included."""


class _Noted(msgspec.Struct, frozen=True):
    at: datetime
    uptime: Uptime


def uptime() -> Uptime:
    try:
        return Uptime(_BOOT_ID.read_text().strip(), time.clock_gettime(time.CLOCK_BOOTTIME))
    except (OSError, AttributeError):  # not Linux
        return Uptime("", 0.0)


class ClockNote:
    def __init__(self, path: Path, *, uptime: Callable[[], Uptime] = uptime) -> None:
        self._path = path
        self._uptime = uptime

    def check(self, now: datetime, *, newest: datetime | None, keep: float, attended: bool = True) -> None:
        """Notes the clock. Refused if it cannot be told whether the clock is right; `newest` is the youngest
        moment that the store knows. `attended`: a person has asked for this run.
        """
        last, running = self._read(), self._uptime()
        known = [newest] if attended or last is None else []
        doubt = _doubt(now, running, last, known, keep)
        if attended or doubt is None:
            self._write(_Noted(now, running))
        if doubt is not None:
            raise Refused(f"{doubt}: nothing was purged", remedy=_REMEDY if attended else _ASK)

    def _read(self) -> _Noted | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Noted)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # never written, or not by us: as at the first run

    def _write(self, noted: _Noted) -> None:
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")  # two may begin at the same moment
        try:
            make_folder(self._path.parent)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(noted))
            part.replace(self._path)
        except OSError as error:
            raise Unreachable(
                f"cannot write {self._path}: {error.strerror}",
                remedy="nothing was purged; name another file in [retention] clock_note",
            ) from error


def _doubt(
    now: datetime, running: Uptime, last: _Noted | None, known: list[datetime | None], keep: float
) -> str | None:
    """What speaks against the clock, if anything does."""
    if last is not None and running.boot and last.uptime.boot == running.boot:
        jumped = (now - last.at).total_seconds() - (running.seconds - last.uptime.seconds)
        ahead = "ahead" if jumped > 0 else "back"
        return f"the clock jumped {short(abs(jumped))} {ahead} since the last run" if abs(jumped) > JUMP else None
    seen = [each for each in (*known, None if last is None else last.at) if each is not None]
    silence = (now - max(seen)).total_seconds() if seen else 0.0
    if silence > max(_SHORTEST_SILENCE, keep / 2):
        return f"the clock is {short(silence)} ahead of everything the store has seen"
    return None
