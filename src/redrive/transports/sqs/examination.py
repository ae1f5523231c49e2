"""What is wrong with queues, by what SQS tells of them: no I/O, the same facts give the same findings.

What may lose a message, or keeps one from being sent, is a problem; what makes it less safe is a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive.finding import Finding, ok, problem, warn
from redrive.transports.inspection import ExpectedQueue
from redrive.transports.sqs.delays import LONGEST_HOP, LONGEST_INVISIBLE, hops_of, longest_delay
from redrive.transports.sqs.fifo import is_fifo
from redrive.transports.sqs.queue_facts import LONGEST_RETENTION, QueueFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINE = "nothing found that may lose a message"
_DEATHS = 3
_RAISE = "raise its MessageRetentionPeriod: aws sqs set-queue-attributes"


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that is expected, and what of it is there."""

    expected: ExpectedQueue
    own: QueueFacts | None
    dead_name: str
    """Where we put its dead letters, if they are put into a queue."""
    dead: QueueFacts | None = None
    target: QueueFacts | None = None
    """Where SQS itself moves its messages, if it is there: what was set up by others has names of its own."""
    declares: bool = True
    """What is missing is made by who needs it."""


def examine(looked: Looked) -> list[Finding]:
    name = looked.expected.name
    found = [*_missing(looked), *_kept(looked), *_moved(looked), *_held(looked)]
    return found or [ok("queue", _FINE, queue=name)]


def _missing(looked: Looked) -> Iterator[Finding]:
    if looked.own is None:
        remedy = "run `redrive setup`" + ("; a worker makes it when it starts" if looked.declares else "")
        yield problem("queue", "does not exist: nobody can send to it", remedy, queue=looked.expected.name)
    if looked.dead is None and looked.expected.to_broker and not looked.declares:
        what = "does not exist, and is not made by itself: dead letters that should go there cannot"
        remedy = "run `redrive setup`, or set sink = 'store'"
        yield problem("queue", what, remedy, queue=looked.dead_name)


def _kept(looked: Looked) -> Iterator[Finding]:
    own, waits = looked.own, looked.expected.waits
    if own is not None and waits > longest_delay(own.retention):
        what = f"keeps messages for {own.retention} s: a retry that waits {waits:.0f} s is refused"
        yield problem("retention", what, f"{_RAISE}, or make retries sooner", queue=own.name)
    if own is None:
        return
    if looked.target is not None:
        yield from _kept_moved(own, looked.target)
    if looked.dead is not None and (own.rule is None or looked.dead.name != own.rule.queue):
        yield from _kept_since_they_came(own, looked.dead)


def _kept_moved(own: QueueFacts, target: QueueFacts) -> Iterator[Finding]:
    """SQS moves a message with its age, unless in FIFO queues: there it begins anew."""
    if own.is_fifo:
        yield from _kept_since_they_came(own, target)
        return
    what = f"keeps messages for {target.retention} s since they were first sent, its queue for {own.retention} s"
    if target.retention < own.retention:
        what = f"{what}: some are deleted before anybody sees them"
        yield problem("retention", what, _RAISE, queue=target.name)
    elif target.retention == own.retention < LONGEST_RETENTION:
        what = f"{what}: those that come late are deleted soon after"
        yield warn("retention", what, f"{_RAISE}, or collect them", queue=target.name)


def _kept_since_they_came(own: QueueFacts, dead: QueueFacts) -> Iterator[Finding]:
    if dead.retention < own.retention:
        what = (
            f"keeps dead letters for {dead.retention} s since they came there, "
            f"and its queue keeps messages for {own.retention} s"
        )
        yield warn("retention", what, f"{_RAISE}, or collect them", queue=dead.name)


def _moved(looked: Looked) -> Iterator[Finding]:
    own = looked.own
    if own is None or own.rule is None:
        return
    if own.is_fifo and looked.target is not None and not looked.target.is_fifo:
        what = f"is a FIFO queue, and RedrivePolicy moves its messages to {own.rule.queue!r}, which is none"
        yield problem("dead-letter-route", what, "name a FIFO queue: redrive setup makes one", queue=own.name)
    if looked.target is None:
        what = f"RedrivePolicy moves messages to {own.rule.queue!r}, which cannot be found"
        yield warn("dead-letter-route", what, "make it, or change the policy", queue=own.name)
    meant = 0 if own.is_fifo else hops_of(looked.expected.waits)
    if own.rule.most <= meant + _DEATHS:
        longest = f", and the longest retry needs {meant} to wait" if meant else ""
        if own.is_fifo:
            longest = ", and the rest of a group goes on without what was moved, out of its order"
        what = (
            f"RedrivePolicy moves messages after {own.rule.most} receptions: those of workers that stop count too"
        )
        remedy = f"set maxReceiveCount to {10 * (meant + _DEATHS)}"
        yield warn("dead-letter-route", what + longest, remedy, queue=own.name)


def _held(looked: Looked) -> Iterator[Finding]:
    longest, waits = looked.expected.longest, looked.expected.waits
    if is_fifo(looked.expected.name) and waits > LONGEST_HOP:
        what = f"a retry waits in its place, and one of {waits:.0f} s is refused: SQS allows 12 hours"
        remedy = "make retries sooner, or let a rule retry dead letters that late"
        yield problem("visibility", what, remedy, queue=looked.expected.name)
    if looked.expected.handled and longest is not None and longest > LONGEST_INVISIBLE:
        what = f"a message may be in hand for {longest:.0f} s, and SQS gives it to another after 12 hours"
        yield warn("visibility", what, "make handler_timeout shorter", queue=looked.expected.name)
