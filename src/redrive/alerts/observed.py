"""What rules look at: numbers of now and of before, groups, runs, and what processes report of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from redrive.dead_letter import FailureGroup
from redrive.insights import Return
from redrive.run import RunStatus


class Attempts(msgspec.Struct, frozen=True, array_like=True):
    """Of one handler on one queue, since ever."""

    handler: str
    queue: str
    succeeded: int
    failed: int


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one moment."""

    at: datetime
    pending: Mapping[str, int]
    """By queue."""
    received: Mapping[str, int]
    """Letters that were recorded since the store began, by queue: never fewer."""
    attempts: tuple[Attempts, ...]


class ProcessRole(StrEnum):
    WORKER = "worker"
    COLLECTOR = "collector"


class ProcessReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a process tells of itself now and then. One that ends in good order takes it away, or leaves what it
    tells of its spool, if letters lie there.
    """

    id: str
    role: ProcessRole
    host: str
    pid: int
    queues: tuple[str, ...] = ()
    unready: Mapping[str, float] = {}
    """Queues that it does not work on though it should, and for how many seconds: clocks of machines differ."""
    spool: str = ""
    """The folder of the spool that it uses."""
    spooled_bytes: int = 0
    """In it, whoever wrote them."""
    spooled_for: float | None = None
    """Seconds. None: nothing is in it."""


class Reported(msgspec.Struct, frozen=True):
    report: ProcessReport
    at: datetime
    """By the store's clock."""


class EndedRun(msgspec.Struct, frozen=True):
    id: str
    status: RunStatus
    ended_at: datetime
    letters: int


MOST_RECENT = 50_000
"""Letters that are counted by group in one look, the newest."""


class NewGroups(msgspec.Struct, frozen=True):
    ids: tuple[str, ...] = ()
    """The newest."""
    more: Mapping[str, int] = {}
    """How many there are besides, by queue."""


class Returned(msgspec.Struct, frozen=True):
    why: Return
    by_hand: bool = False
    """A person had settled what there was before."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever is shown to people is masked already."""

    at: datetime
    samples: tuple[Sample, ...] = ()
    """The oldest first; the last one is of now."""
    oldest: Mapping[tuple[str, ...], datetime | None] = {}
    """When the oldest open letter of these queues (none: of all) was recorded."""
    new: Mapping[float, NewGroups] = {}
    """Groups that were first seen in the last so many seconds."""
    returned: Mapping[float, Mapping[str, Returned]] = {}
    """Groups that are back since so many seconds."""
    recent: Mapping[float, Mapping[str, int]] = {}
    """Letters of the last so many seconds, by group."""
    lately: Mapping[float, Mapping[str, int]] = {}
    """The same, and those of a little before: for whoever asks which causes a number of letters comes from."""
    critical: Mapping[str, int] = {}
    """Open letters that failed critically, by group."""
    groups: Mapping[str, FailureGroup] = {}
    """Those that are named above, and those that are asked about."""
    runs: tuple[EndedRun, ...] = ()
    """That failed or were stopped."""
    processes: tuple[Reported, ...] = ()
    steady: bool = True
    """Whether whoever looks has looked for long enough, without a break, to know who reports and who does not."""
