"""Spools that letters lie in, of what processes report of them.

Whoever reported last about a folder knows best what is in it, also of what another one has written: a process that
was killed says nothing new, and its successor brings into the store what it has left.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from redrive.alerts.observed import ProcessRole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from redrive.alerts.observed import Reported


class SpoolInUse(NamedTuple):
    host: str
    bytes: int
    seconds: float
    """Since it is: for as long as any of those who use it has seen it so."""
    queues: frozenset[str]
    """That those who use it work on; empty: nobody does any more."""


def spools_in_use(reports: Iterable[Reported], now: datetime) -> list[SpoolInUse]:
    found = []
    for mine in _by_folder(reports):
        last = mine[-1].report
        ages = [
            each.report.spooled_for + (now - each.at).total_seconds()
            for each in mine
            if each.report.spooled_for is not None
        ]
        if last.spooled_for is not None:
            found.append(SpoolInUse(last.host, last.spooled_bytes, max(ages), frozenset(last.queues)))
    return found


def outdated(reports: Iterable[Reported]) -> list[Reported]:
    """Those that tell of letters in a folder that is empty since."""
    return [
        each
        for mine in _by_folder(reports)
        if mine[-1].report.spooled_for is None
        for each in mine
        if each.report.spooled_for is not None
    ]


def _by_folder(reports: Iterable[Reported]) -> list[list[Reported]]:
    """The oldest word first. Only workers have spools. Those of an older version do not name theirs."""
    found: defaultdict[tuple[str, str], list[Reported]] = defaultdict(list)
    for each in sorted(reports, key=lambda each: (each.at, each.report.spooled_bytes, each.report.id)):
        if each.report.role is ProcessRole.WORKER:
            found[each.report.host, each.report.spool].append(each)
    return list(found.values())
