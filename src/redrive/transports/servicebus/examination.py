"""What is wrong with queues and subscriptions, by what Service Bus tells of them: no I/O, the same facts give the
same findings.

What may lose a message, or keeps one from being sent or read, is a problem; what makes it less safe is a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from redrive import servicebus_paths as paths
from redrive.duration import short
from redrive.finding import Finding, ok, problem, warn
from redrive.transports.inspection import ExpectedQueue
from redrive.transports.servicebus.entity_facts import EntityFacts, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINE = "nothing found that may lose a message"
_FEW_DELIVERIES = 20
"""A worker that stops gives back what it has, and that is a delivery each time."""
_SHORT_LIFE = 86_400.0
_SHORT_LOCK = 15.0


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A queue or subscription that is expected, and what of it is there."""

    expected: ExpectedQueue
    own: EntityFacts | None
    dead: EntityFacts | None = None
    """The queue that Redrive itself has for its dead letters."""
    in_sessions: bool = False
    """It is read session by session."""


def examine(looked: Looked) -> list[Finding]:
    own, name = looked.own, looked.expected.name
    if own is None:
        return [problem("queue", "does not exist: nobody can send to it", "run `redrive setup`", queue=name)]
    if own.kind is Kind.TOPIC:
        what = "is a topic: nothing can be received from it"
        return [problem("queue", what, f"name a subscription: {name}/Subscriptions/NAME", queue=name)]
    found = [
        *_reachable(own),
        *_expiring(own),
        *_of_dead_letters(looked.dead),
        *_given_back(own),
        *_waiting(own),
        *_doubled(own),
        *(_read(own, in_sessions=looked.in_sessions) if looked.expected.handled else ()),
    ]
    return found or [ok("queue", _FINE, queue=name)]


def _reachable(own: EntityFacts) -> Iterator[Finding]:
    if not own.enabled:
        what = "is disabled: it takes no messages, or gives none"
        yield problem("state", what, _update(own, "--status Active"), queue=own.path)
    if own.forwards_to:
        what = f"forwards everything to {own.forwards_to!r}: whoever reads it gets nothing"
        yield problem("forwarding", what, f"read {own.forwards_to!r}, or remove ForwardTo", queue=own.path)
    if own.deleted_when_idle is not None:
        what = f"is deleted, with its messages, when nobody uses it for {short(own.deleted_when_idle)}"
        yield problem("expires", what, "remove AutoDeleteOnIdle", queue=own.path)


def _expiring(own: EntityFacts) -> Iterator[Finding]:
    turn_on = _update(own, "--enable-dead-lettering-on-message-expiration true")
    if own.keeps_expired:
        if own.lives is not None and own.lives < _SHORT_LIFE:
            what = f"messages that wait for {short(own.lives)} expire into its dead letters"
            yield warn("ttl", what, "raise DefaultMessageTimeToLive, or collect them", queue=own.path)
    elif own.lives is not None:
        what = f"messages that wait for {short(own.lives)} vanish: DeadLetteringOnMessageExpiration is off"
        yield problem("ttl", what, turn_on, queue=own.path)
    else:
        what = "a message that its producer gave a time to live vanishes when it is over"
        yield warn("ttl", f"{what}: DeadLetteringOnMessageExpiration is off", turn_on, queue=own.path)
    if not own.keeps_unfiltered:
        what = "messages that its filter fails for vanish: DeadLetteringOnFilterEvaluationExceptions is off"
        yield problem("dead-letter-route", what, "turn it on", queue=own.path)


def _of_dead_letters(dead: EntityFacts | None) -> Iterator[Finding]:
    if dead is None:
        return
    if dead.lives is not None and not dead.keeps_expired:
        what = f"dead letters that wait for {short(dead.lives)} vanish"
        yield problem("ttl", what, "remove DefaultMessageTimeToLive", queue=dead.path)
    if dead.sessions:
        what = "requires sessions: a dead letter without one is refused"
        yield problem("sessions", what, "make it anew without sessions", queue=dead.path)


def _given_back(own: EntityFacts) -> Iterator[Finding]:
    if own.most_deliveries < _FEW_DELIVERIES:
        what = (
            f"MaxDeliveryCount is {own.most_deliveries}: workers that stop count too, and beyond it Service Bus "
            "dead-letters a message itself"
        )
        yield warn("delivery-limit", what, _update(own, "--max-delivery-count 100"), queue=own.path)


def _waiting(own: EntityFacts) -> Iterator[Finding]:
    """What lies in a subqueue never expires, and counts for the size of its queue."""
    for count, subqueue in ((own.dead, paths.DEAD_LETTERS), (own.transfer_dead, paths.TRANSFER_DEAD_LETTERS)):
        if count:
            what = f"{count} dead letter{'' if count == 1 else 's'} of Service Bus itself, which never expire"
            place = f"{own.path}/{subqueue}"
            yield warn("uncollected", what, f"redrive collect '{place}'", queue=place)
    if own.forwards_dead_to:
        what = f"its dead letters go on to {own.forwards_dead_to!r}"
        yield warn("dead-letter-route", what, f"redrive collect {own.forwards_dead_to}", queue=own.path)


def _doubled(own: EntityFacts) -> Iterator[Finding]:
    if own.drops_duplicates is not None:
        within = short(own.drops_duplicates)
        what = (
            f"duplicate detection: what has the MessageId of another within {within} is accepted and thrown away"
        )
        remedy = "see that producers give every message an id of its own, as retries and redrives have"
        yield warn("duplicates", what, remedy, queue=own.path)


def _read(own: EntityFacts, *, in_sessions: bool) -> Iterator[Finding]:
    if own.lock < _SHORT_LOCK:
        what = f"a worker that stands still for {short(own.lock)} loses what it has in hand"
        yield warn("lock", what, _update(own, "--lock-duration PT1M"), queue=own.path)
    if own.sessions and not in_sessions:
        what = "requires sessions, and nothing can be received from it without"
        yield problem("sessions", what, "name it in broker.servicebus.sessions", queue=own.path)
    elif in_sessions and not own.sessions:
        what = "has no sessions, and is to be read by them: nothing can be received from it"
        yield problem("sessions", what, "take it out of broker.servicebus.sessions", queue=own.path)


def _update(own: EntityFacts, option: str) -> str:
    if own.kind is Kind.QUEUE:
        return f"az servicebus queue update --name {own.path} {option}"
    where = paths.parse(own.path)
    return (
        f"az servicebus topic subscription update --topic-name {where.name} --name {where.subscription} {option}"
    )
