"""What the settings of retention allow to be lost: see `redrive.examined_settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.dead_letter import Status
from redrive.duration import short
from redrive.errors import Unreachable
from redrive.finding import problem, warn
from redrive.keeping import SETTLED
from redrive.retention_wiring import keep_rules
from redrive.upkeep.archive_places import open_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding
    from redrive.keeping import Keep
    from redrive.settings import Settings

_DAY = 86400.0


def examine_retention(settings: Settings) -> Iterator[Finding]:
    rules = keep_rules(settings)
    yield from _kept(rules.otherwise, None)
    for queue, keep in rules.queues.items():
        yield from _kept(keep, queue)
    if settings.retention.archive is None:
        what = "letters that leave the store are deleted, not archived"
        yield warn("retention-archive", what, "name a folder in retention.archive")
    for name in (None, *settings.queues):
        own = settings.dead_letters if name is None else settings.queues[name].dead_letters
        keep = rules.otherwise if name is None else rules.queues.get(name, rules.otherwise)
        yield from _late(own.assume_after, keep.resolved, name)


def examine_copies(settings: Settings) -> list[Finding]:
    """Whether the place that archives are copied to is there. It looks at a disk that may be away."""
    url = settings.retention.copy_to
    if url is None or settings.retention.archive is None:
        return []
    try:
        open_place(url.reveal()).names()
    except Unreachable as error:
        return [problem("retention-copies", f"{error}: while it is away nothing is purged", error.remedy)]
    return []


def _kept(keep: Keep, queue: str | None) -> Iterator[Finding]:
    place = "retention" if queue is None else f"queues.{queue}.retention"
    for status in SETTLED:
        span = keep.of(status)
        if status is Status.DISCARDED and span == keep.resolved:
            continue  # told already
        which = "resolved and discarded" if keep.resolved == keep.discarded else status.lower()
        name = "keep_discarded" if which == "discarded" else "keep"
        if span == 0:
            at_once = which.replace(" and ", " or ")
            what = f"letters leave the store as soon as they are {at_once}: nobody can restore one"
            yield warn("retention-keep", what, f"set {place}.{name}, such as '90d'", queue=queue)
        elif span < _DAY:
            what = f"{which} letters leave the store after {short(span)}"
            remedy = f"set {place}.{name} so that a mistake is noticed before"
            yield warn("retention-keep", what, remedy, queue=queue)


def _late(needed: float | None, keep: float, queue: str | None) -> Iterator[Finding]:
    if needed is not None and 0 < keep < needed:
        what = (
            f"a redrive is waited for up to {short(needed)} and resolved letters are kept for"
            f" {short(keep)}: one that comes back late finds no letter of its own"
        )
        yield warn("retention-keep", what, f"set retention.keep to {short(needed)} or more", queue=queue)
