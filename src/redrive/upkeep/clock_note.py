"""What the clock said at the last run, so that a clock that jumped purges nothing (F21).

Since one start of the machine, the wall clock and the time since that start must have gone on alike. Across starts
they cannot be compared, and the newest letter and the last run have to do: a clock far ahead of both may be right
(a store where nothing failed for months) or wrong. In doubt nothing is purged and the clock is noted; a second
run, which can compare, goes ahead if the clock has gone on as it should.
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

    def check(self, now: datetime, *, newest: datetime | None, keep: float) -> None:
        """Notes the clock. Refused if it cannot be told whether the clock is right; `newest` is the youngest
        moment that the store knows.
        """
        last, running = self._read(), self._uptime()
        self._write(_Noted(now, running))
        if last is not None and running.boot and last.uptime.boot == running.boot:
            jumped = (now - last.at).total_seconds() - (running.seconds - last.uptime.seconds)
            if abs(jumped) > JUMP:
                ahead = "ahead" if jumped > 0 else "back"
                raise Refused(
                    f"the clock jumped {short(abs(jumped))} {ahead} since the last run: nothing was purged",
                    remedy=_REMEDY,
                )
            return
        known = [each for each in (newest, None if last is None else last.at) if each is not None]
        silence = (now - max(known)).total_seconds() if known else 0.0
        if silence > max(_SHORTEST_SILENCE, keep / 2):
            raise Refused(
                f"the clock is {short(silence)} ahead of everything the store has seen: nothing was purged",
                remedy=_REMEDY,
            )

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
