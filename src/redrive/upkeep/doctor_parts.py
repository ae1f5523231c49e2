"""What the doctor looks at, side by side: a part that hangs or fails is a finding, and keeps nobody waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from redrive.errors import RedriveError
from redrive.finding import Finding, FindingLevel, FoundAt, problem
from redrive.telemetry.error_facts import error_facts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = structlog.get_logger("redrive.doctor")

_OTHERS = frozenset({FoundAt.BROKER, FoundAt.STORE})


class Part(NamedTuple):
    check: str
    """For what is wrong with the look itself."""
    place: FoundAt
    name: str
    look: Callable[[], Awaitable[list[Finding]]]


async def bounded(part: Part, within: float) -> list[Finding]:
    """What the part found, or that it did not in so many seconds. Never waits longer for it."""
    looking = asyncio.ensure_future(part.look())
    done, _ = await asyncio.wait({looking}, timeout=within)
    if not done:
        looking.cancel()
        looking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        found = [_silent(part, within)]
    else:
        found = _found(part, looking)
    return [msgspec.structs.replace(each, place=part.place) for each in found]


def _found(part: Part, looking: asyncio.Future[list[Finding]]) -> list[Finding]:
    error = looking.exception()
    if error is None:
        return looking.result()
    if isinstance(error, RedriveError):
        told = f"{part.name} could not be looked at: {error}"
        return [Finding(check=part.check, level=FindingLevel.PROBLEM, what=told, remedy=error.remedy)]
    log.error("a part of the doctor has failed", part=part.name, **error_facts(error))
    what = f"{part.name} could not be looked at: {type(error).__name__}"
    # A problem, for nobody knows now whether that part is well: a script that looks at exit codes must hear of it.
    return [problem(part.check, what, "see the log, and report it: this is a fault of Redrive")]


def _silent(part: Part, within: float) -> Finding:
    return Finding(
        check=part.check,
        level=FindingLevel.PROBLEM,
        what=f"{part.name} did not answer within {within:g} s",
        remedy="see whether it hangs, or the network on the way to it",
        unreachable=part.place in _OTHERS,
    )
