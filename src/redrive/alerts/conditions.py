"""Which of the things that a rule is about are true now. Nothing here remembers: `incident` does.

Numbers are compared with the last sample before the window. Shortly after the start there is none, and they are
compared with the first one; then a rate has to be reached in less time, so that nothing is told that is not so.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from redrive.access import fits
from redrive.alerts.observed import NewGroups, ProcessRole
from redrive.alerts.rule import RuleKind
from redrive.alerts.spools import spools_in_use
from redrive.dead_letter import OPEN
from redrive.duration import short
from redrive.insights import Return
from redrive.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import datetime

    from redrive.alerts.observed import Observed, Reported, Sample
    from redrive.alerts.rule import AlertRule
    from redrive.dead_letter import FailureGroup

_PLAIN = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_SAFE_HOURS = 23
"""Whole hours that a group's trend tells of, besides the one that has begun."""
_NEW_FOR = 3600.0

SILENT_AFTER = 60.0
"""Seconds without a report after which a process is taken to be gone."""


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is so."""

    subject: str
    """What it is about, among the things of its rule: a queue, a group, a run; empty if there is but one."""
    title: str
    counts: Mapping[str, int]
    queue: str = ""
    group_id: str = ""
    path: str = "/"
    weighed: int = 0
    """Of a number that is compared with a threshold: how many letters that is,"""
    beyond: float = 0.0
    """and how many too many."""
    at_once: bool = False
    """No cooldown holds it up: somebody who had settled it has to know that it is back."""

    @property
    def weight(self) -> int:
        """Which of many are told first."""
        return self.counts.get("letters", 0)


def key_of(rule: str, subject: str) -> str:
    """The same for the same thing at any time, and something that every channel takes."""
    plain = (
        subject
        if _PLAIN.fullmatch(subject)
        else hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    )
    return f"{rule}/{plain}" if subject else rule


def conditions(rule: AlertRule, observed: Observed, firing: Collection[str]) -> list[Condition]:
    """`firing`: groups that the rule has told of and that are not over as far as anybody knows."""
    if rule.kind in _OF_FIRING:
        return list(_OF_FIRING[rule.kind](rule, observed, firing))
    return list(_KINDS[rule.kind](rule, observed)) if rule.kind in _KINDS else []


# Numbers of now and of before


def _pending(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    within = _since_before(rule, observed)
    if not within or _seconds(within[0], observed) < rule.window * 0.95:
        return  # nobody knows what was so at its beginning
    for queue, now in _summed(rule, observed.samples[-1].pending).items():
        if all(_summed(rule, each.pending).get(queue, 0) > rule.threshold for each in within):
            what = f"{now:,} dead letters are pending{_in(queue)}"
            yield _of_number(rule, queue, what, {"pending": now}, number=now, most=rule.threshold)


def _growth(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    within = _since_before(rule, observed)
    if not within:
        return
    before = _summed(rule, within[0].pending)
    for queue, now in _summed(rule, observed.samples[-1].pending).items():
        more = now - before.get(queue, 0)
        if more > rule.threshold:
            ago = short(_seconds(within[0], observed))
            what = f"{more:,} more dead letters are pending{_in(queue)} than {ago} ago"
            counts = {"more": more, "pending": now}
            yield _of_number(rule, queue, what, counts, number=more, most=rule.threshold)


def _rate(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    within = _since_before(rule, observed)
    if not within:
        return
    before, last = _summed(rule, within[0].received), observed.samples[-1]
    # A window that is not over yet counts as long as it will be.
    seconds = max(_seconds(within[0], observed), rule.window)
    for queue, now in _summed(rule, last.received).items():
        letters, most = now - before.get(queue, 0), rule.threshold * seconds / 60
        if letters > most:
            minute = round(letters * 60 / seconds)
            what = f"{letters:,} messages were dead-lettered{_in(queue)} in {short(seconds)}"
            counts = {"letters": letters, "per minute": minute}
            yield _of_number(rule, queue, what, counts, number=letters, most=most)


def _of_number(
    rule: AlertRule, queue: str, title: str, counts: Mapping[str, int], *, number: int, most: float
) -> Condition:
    return Condition(
        subject=queue,
        title=title,
        counts=counts,
        queue=_queue_of(rule, queue),
        path="/letters",
        weighed=number,
        beyond=number - most,
    )


def _failure_rate(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    within = _since_before(rule, observed)
    if not within:
        return
    before, now = _attempts(rule, within[0]), _attempts(rule, observed.samples[-1])
    for handler, (succeeded, failed) in now.items():
        earlier = before.get(handler, (0, 0))
        bad, every = failed - earlier[1], succeeded - earlier[0] + failed - earlier[1]
        if every >= max(rule.at_least, 1) and bad > rule.threshold * every:
            percent = round(100 * bad / every)
            what = f"{percent} % of the attempts of handler {handler} fail"
            counts = {"failed": bad, "attempts": every, "percent": percent}
            yield Condition(subject=handler, title=what, counts=counts, path="/queues")


def _attempts(rule: AlertRule, sample: Sample) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for each in sample.attempts:
        if is_meant(rule, each.queue):
            succeeded, failed = found.get(each.handler, (0, 0))
            found[each.handler] = (succeeded + each.succeeded, failed + each.failed)
    return found


def _since_before(rule: AlertRule, observed: Observed) -> list[Sample]:
    """The samples of the window behind the last one before it, which is compared with if there is one."""
    begin = observed.at - timedelta(seconds=rule.window)
    known = [each for each in observed.samples if each.at <= observed.at]
    before = [each for each in known if each.at <= begin]
    return [*before[-1:], *(each for each in known if each.at > begin)]


def _seconds(since: Sample, observed: Observed) -> float:
    return (observed.at - since.at).total_seconds()


def _summed(rule: AlertRule, by_queue: Mapping[str, int]) -> dict[str, int]:
    """By queue, or all of them under no name."""
    found: Counter[str] = Counter()
    for queue, number in by_queue.items():
        if is_meant(rule, queue):
            found[queue if rule.each_queue else ""] += number
    return dict(found)


def _age(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    oldest = observed.oldest.get(rule.queues)
    waited = 0.0 if oldest is None else (observed.at - oldest).total_seconds()
    if waited > rule.window:
        what = f"The oldest dead letter has waited for {short(waited)}"
        yield Condition(
            subject="",
            title=what,
            counts={"hours": int(waited // 3600)},
            queue=_queue_of(rule, ""),
            path="/letters",
        )


# Groups


def _new_group(rule: AlertRule, observed: Observed, firing: Collection[str]) -> Iterator[Condition]:
    # What is back already is told as that.
    new = set(_new(rule, observed).ids).difference(*observed.returned.values())
    for group in _open(rule, observed, new | set(firing)):
        yield _of_group(group, f"New failure: {group.title}", letters=_open_letters(group))


def uncounted(rule: AlertRule, observed: Observed, found: Collection[Condition]) -> int:
    """Of new failures there may be more than were looked at one by one: how many."""
    if rule.kind is not RuleKind.NEW_GROUP:
        return 0
    new, since = _new(rule, observed), observed.at - timedelta(seconds=rule.window)
    more = sum(number for queue, number in new.more.items() if is_meant(rule, queue))
    # Some of these were told before, and are looked at for as long as they last.
    others = {each.group_id for each in found}.difference(new.ids)
    return max(more - sum(observed.groups[each].first_seen >= since for each in others), 0)


def _new(rule: AlertRule, observed: Observed) -> NewGroups:
    return observed.new.get(rule.window, NewGroups())


_RETURNED = {
    Return.QUIET: "Back after days of quiet",
    Return.SETTLED: "Back, though all of it was settled",
    Return.CAME_BACK: "Back after it was redriven",
}


def _returning_group(rule: AlertRule, observed: Observed, firing: Collection[str]) -> Iterator[Condition]:
    back = observed.returned.get(rule.window, {})
    for group in _open(rule, observed, back.keys() | set(firing)):
        reason = back.get(group.id)
        told = "Back" if reason is None else _RETURNED[reason.why]
        found = _of_group(group, f"{told}: {group.title}", letters=_open_letters(group))
        yield msgspec.structs.replace(found, at_once=reason is not None and reason.by_hand)


def _accelerating_group(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    recent = observed.recent.get(rule.window, {})
    for group in _meant(rule, observed, recent):
        letters = recent[group.id]
        usual = _usual(group, letters, rule.window, observed.at)
        if usual is not None and letters >= rule.at_least and letters >= rule.threshold * usual:
            counts = {"letters": letters, "usual": round(usual), "open": _open_letters(group)}
            yield _of_group(group, f"Fails ever faster: {group.title}", **counts)


def _usual(group: FailureGroup, recent: int, window: float, now: datetime) -> float | None:
    """Letters in a window on the average of the last day, or of the time before the window if the group is
    younger; None: it is new.
    """
    age = (now - group.first_seen).total_seconds()
    if age < max(_NEW_FOR, 2 * window):
        return None
    if age >= _SAFE_HOURS * 3600:
        return sum(group.trend[-1 - _SAFE_HOURS : -1]) / _SAFE_HOURS * window / 3600
    # Its first hour is not a whole one: by hours, what has come steadily since would look like ever more.
    return max(sum(group.trend) - recent, 0) / (age - window) * window


def _critical(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    for group in _meant(rule, observed, observed.critical):
        yield _of_group(group, f"Critical failure: {group.title}", letters=observed.critical[group.id])


def _open(rule: AlertRule, observed: Observed, ids: Iterable[str]) -> Iterator[FailureGroup]:
    return (group for group in _meant(rule, observed, ids) if _open_letters(group))


def _open_letters(group: FailureGroup) -> int:
    """A letter in quarantine waits for somebody too."""
    return sum(group.by_status.get(str(status), 0) for status in OPEN)


def _meant(rule: AlertRule, observed: Observed, ids: Iterable[str]) -> Iterator[FailureGroup]:
    for each in ids:
        group = observed.groups.get(each)
        if group is not None and is_meant(rule, group.queue):
            yield group


def _of_group(group: FailureGroup, title: str, **counts: int) -> Condition:
    return Condition(
        subject=group.id,
        title=title,
        counts=counts,
        queue=group.queue,
        group_id=group.id,
        path=f"/groups/{group.id}",
    )


# Runs and processes


def _failed_run(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    since = observed.at - timedelta(seconds=rule.window)
    for run in observed.runs:
        if run.ended_at >= since:
            how = "has failed" if run.status is RunStatus.FAILED else "was stopped"
            yield Condition(
                subject=run.id,
                title=f"Run {run.id} {how}",
                counts={"letters": run.letters},
                path=f"/runs/{run.id}",
            )


def _spool(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
    in_use: Counter[str] = Counter()
    for each in spools_in_use(observed.processes, observed.at):
        concerns = not each.queues or any(is_meant(rule, queue) for queue in each.queues)
        if each.seconds >= rule.window and concerns:
            in_use[each.host] += each.bytes
    for host, size in in_use.items():
        what = f"Dead letters wait in the spool of {host}: the store does not take them"
        yield Condition(subject=host, title=what, counts={"bytes": size}, path="/queues")


def _down(role: ProcessRole, what: str) -> Callable[[AlertRule, Observed], Iterator[Condition]]:
    """Of a queue that such processes look after, none of them has been at it for as long as the window."""

    def of(rule: AlertRule, observed: Observed) -> Iterator[Condition]:
        mine = [each for each in observed.processes if each.report.role is role]
        for queue in sorted({queue for each in mine for queue in each.report.queues if is_meant(rule, queue)}):
            concerned = [each for each in mine if queue in each.report.queues]
            gone = max(_at_work_until(each, queue, observed.at) for each in concerned)
            if (observed.at - gone).total_seconds() > rule.window:
                yield Condition(
                    subject=queue,
                    title=f"No {role.value} {what} queue {queue}: gone, or held up",
                    counts={f"{role.value}s missing": len(concerned)},
                    queue=queue,
                    path="/queues",
                )

    return of


def _at_work_until(each: Reported, queue: str, now: datetime) -> datetime:
    if queue in each.report.unready:
        return each.at - timedelta(seconds=each.report.unready[queue])
    return now if (now - each.at).total_seconds() <= SILENT_AFTER else each.at


def is_meant(rule: AlertRule, queue: str) -> bool:
    """Whether the rule is about this queue."""
    return not rule.queues or any(fits(queue, pattern) for pattern in rule.queues)


def _queue_of(rule: AlertRule, queue: str) -> str:
    """Of a rule about one queue alone, that one: those who look after it may see what is told."""
    alone = len(rule.queues) == 1 and not rule.queues[0].endswith("*")
    return rule.queues[0] if alone and not queue else queue


def _in(queue: str) -> str:
    return f" in {queue}" if queue else ""


_KINDS: dict[RuleKind, Callable[[AlertRule, Observed], Iterator[Condition]]] = {
    RuleKind.PENDING: _pending,
    RuleKind.GROWTH: _growth,
    RuleKind.RATE: _rate,
    RuleKind.AGE: _age,
    RuleKind.FAILURE_RATE: _failure_rate,
    RuleKind.ACCELERATING_GROUP: _accelerating_group,
    RuleKind.CRITICAL: _critical,
    RuleKind.FAILED_RUN: _failed_run,
    RuleKind.SPOOL: _spool,
    RuleKind.COLLECTOR_DOWN: _down(ProcessRole.COLLECTOR, "collects"),
    RuleKind.WORKER_DOWN: _down(ProcessRole.WORKER, "works on"),
}
"""Not among them: a store that is down tells nobody anything, so its rule is seen to by whoever asks it."""

_OF_FIRING: dict[RuleKind, Callable[[AlertRule, Observed, Collection[str]], Iterator[Condition]]] = {
    RuleKind.NEW_GROUP: _new_group,
    RuleKind.RETURNING_GROUP: _returning_group,
}
"""They begin with an event and are over when nothing of it is left."""
