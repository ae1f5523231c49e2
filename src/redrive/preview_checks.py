"""The blast radius of a redrive run, judged: one check per danger, each with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.dead_letter import MAX_GENERATIONS
from redrive.duration import short
from redrive.failure import UNKNOWN_HANDLER
from redrive.preview import Check, Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redrive.letter_query import Count
    from redrive.preview import Detour, Endings, Expired, Overview, Targets

BACKLOG = 10_000
"""Messages that may wait in a target queue without a warning, if the plan's brakes name no other number."""
_NAMED = 3


def judge(
    overview: Overview,
    targets: Targets,
    expired: Iterable[Expired] = (),
    *,
    to_origin: bool = False,
    backlog: int | None = None,
) -> tuple[Check, ...]:
    """Every check, in the order of a page."""
    return (
        letters(overview),
        *_where_to(targets, to_origin=to_origin, backlog=BACKLOG if backlog is None else backlog),
        *(detour(each, overview) for each in targets.detours),
        earlier_redrives(overview),
        generations(overview),
        edits(overview),
        expiry(tuple(expired)),
        quarantined(overview),
        order(overview),
    )


def letters(overview: Overview) -> Check:
    if overview.count:
        return _ok("letters", f"{number(overview.count, exact=overview.exact)} will be sent")
    if overview.exact:
        return _stop("letters", "no PENDING letter matches: see what does with `redrive list --where`")
    found = "no PENDING letter was found in short time, which does not say that there is none"
    return _warn("letters", f"{found}: name a queue, a group or a time as well")


def _where_to(targets: Targets, *, to_origin: bool, backlog: int) -> tuple[Check, ...]:
    if to_origin and not targets.unknown:
        return (_origin(targets.readers, targets.readers_are),)
    if targets.unknown:
        unknown = f"nothing is known about the target: {targets.unknown}"
        return (_warn("target", f"{unknown}; see `redrive doctor` before you begin"),)
    return target(targets), consumers(targets), waiting(targets, backlog)


def _origin(readers: tuple[str, ...] | None, are: str) -> Check:
    if readers is None:
        where = f"each letter goes to the {'exchange' if are == 'queue' else 'topic'} that its producer sent it to"
        return _warn("target", f"{where}: which {are}s that reaches is not known before, so try one letter first")
    where = "each letter goes to the topic that its producer sent it to"
    if not readers:
        return _warn("target", f"{where}, which no {are} has read")
    many = f"which {len(readers)} {are}s read" if len(readers) > 1 else f"which one {are} reads"
    return _warn("target", f"{where}, {many}: {', '.join(readers)}; each of them handles it again")


def detour(found: Detour, overview: Overview) -> Check:
    """Letters for a subscription, which nothing can be sent to."""
    meant = f"what is meant for {found.name!r}"
    choice = "--original-topic sends to its topic"
    if found.impossible:
        makes = "`redrive setup` makes the queue, for a worker of Redrive's"
        return _stop("subscription", f"{found.impossible}: {makes}; {choice}, for all who get it there")
    if found.readers is not None:
        alone = f"goes to topic {found.place!r}, where by the rules of its subscriptions no other one gets it"
        return _ok("subscription", f"{meant} {alone}")
    beside = f"{meant} goes to {found.place!r}, which only a worker of Redrive's reads for that subscription"
    if all(letter.handler != UNKNOWN_HANDLER for letter in overview.sample):
        return _ok("subscription", beside)
    remedy = f"some of these letters died with another program; if that reads the subscription, {choice}"
    return _warn("subscription", f"{beside}: {remedy}, for all its subscriptions that have no rule against it")


def target(targets: Targets) -> Check:
    missing = [each.name for each in targets.queues if each.exists is False]
    if missing:
        remedy = "make it with `redrive setup`, or send the letters to another queue"
        return _stop("target", f"the broker has no queue {_listed(missing)}: {remedy}")
    unknown = [each.name for each in targets.queues if each.exists is None]
    if unknown:
        return _ok("target", f"the broker does not tell whether {_listed(unknown)} is there")
    return _ok("target", f"{_listed([each.name for each in targets.queues]) or 'nothing to look for'}: is there")


def consumers(targets: Targets) -> Check:
    there = [each for each in targets.queues if each.exists is not False]
    idle = [each.name for each in there if each.consumers == 0]
    if idle:
        remedy = "what is sent waits there; start its consumer first, or nobody can say what came of it"
        return _warn("consumers", f"nobody consumes {_listed(idle)}: {remedy}")
    unknown = [each.name for each in there if each.consumers is None]
    if unknown:
        return _ok("consumers", f"the broker does not tell who consumes {_listed(unknown)}")
    return _ok("consumers", "every target has a consumer")


def waiting(targets: Targets, limit: int) -> Check:
    full = [each for each in targets.queues if each.waiting is not None and each.waiting > limit]
    if full:
        most = max(full, key=lambda each: each.waiting or 0)
        found = f"{most.waiting:,} messages wait in {most.name!r}, more than {limit:,}"
        more = f", and {len(full) - 1} more queues are as full" if len(full) > 1 else ""
        return _warn("backlog", f"{found}{more}: let them be worked off first, or send slowly")
    known = [each.waiting for each in targets.queues if each.waiting is not None]
    if not known:
        return _ok("backlog", "the broker does not tell what waits in the target")
    return _ok("backlog", f"{sum(known):,} messages wait in the target{'' if len(known) == 1 else 's'}")


def earlier_redrives(overview: Overview) -> Check:
    told = [part for part in (_own(overview), _last_time(overview.earlier)) if part]
    if not told:
        return _ok("earlier redrives", f"none of {_looked_at(overview)} was sent before")
    mostly_again = 2 * overview.redriven > overview.looked_at
    mostly_back = 2 * overview.earlier.came_back > overview.earlier.decided
    if mostly_again or mostly_back:
        remedy = "make sure that the cause is gone, and begin with a canary"
        return _warn("earlier redrives", f"{'; '.join(told)}: {remedy}")
    return _ok("earlier redrives", "; ".join(told))


def _own(overview: Overview) -> str:
    if not overview.redriven:
        return ""
    ended = f" ({_endings(overview.own)})" if overview.own.total else ""
    return f"{overview.redriven:,} of {_looked_at(overview)} were sent before{ended}"


def _last_time(earlier: Endings) -> str:
    if earlier.decided:
        # Rounded down: only if every one of them came through is it 100 %.
        share = 100 * earlier.confirmed // earlier.decided
        return f"last time {share} % came through ({_endings(earlier)})"
    return f"last time: {_endings(earlier)}" if earlier.total else ""


def _endings(endings: Endings) -> str:
    parts = (
        (endings.confirmed, "confirmed"),
        (endings.came_back, "came back"),
        (endings.refused, "refused"),
        (endings.without_word, "without word"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in parts if count)


def generations(overview: Overview) -> Check:
    if not overview.last_chance:
        return _ok("generations", f"none of {_looked_at(overview)} is at its last try")
    found = f"{overview.last_chance:,} of {_looked_at(overview)} came back {MAX_GENERATIONS - 1} times or more"
    remedy = "once more and they are QUARANTINED, so make sure that the cause is gone"
    return _warn("generations", f"{found}: {remedy}")


def edits(overview: Overview) -> Check:
    if not overview.edited:
        return _ok("edits", f"none of {_looked_at(overview)} was edited before")
    found = f"{overview.edited:,} of {_looked_at(overview)} were edited before, and are sent as edited"
    return _ok("edits", f"{found}: `revision:>0` in the filter finds them")


def expiry(expired: tuple[Expired, ...]) -> Check:
    old = [each for each in expired if each.letters.number]
    if not old:
        return _ok("expiry", "none is older than its queue lets it be")
    parts = (
        f"{_count(each.letters)} of {each.queue!r} older than {short(each.after)}"
        for each in sorted(old, key=lambda each: -each.letters.number)[:_NAMED]
    )
    more = f" and more in {len(old) - _NAMED} other queues" if len(old) > _NAMED else ""
    remedy = "whoever receives them may act on what no longer holds; leave them out by `age:<...`, or discard them"
    return _warn("expiry", f"{', '.join(parts)}{more}, past their expiry: {remedy}")


def quarantined(overview: Overview) -> Check:
    found = overview.quarantined
    if not found.number:
        return _ok("quarantined", "no QUARANTINED letter matches")
    causes = ", ".join(f"{number:,} {cause or 'without a cause'}" for cause, number in overview.causes.items())
    which = f"{_count(found)} QUARANTINED{f' ({causes})' if causes else ''}"
    if overview.releases:
        remedy = "make sure that nothing they were kept back for is left"
        return _warn("quarantined", f"{which} are released and sent: {remedy}")
    remedy = "look at them and release those that may be sent, or take all of them with --quarantined"
    return _warn("quarantined", f"{which} match too and are not taken: {remedy}")


def order(overview: Overview) -> Check:
    looked_at = _oldest(overview.keys_of, overview.count)
    kept = f"{overview.ordered:,} of {looked_at} are sent in their order, with what is parked behind them"
    if not overview.keyed:
        return _ok("order", kept if overview.ordered else f"none of {looked_at} has a key")
    found = f"{kept}; " if overview.ordered else ""
    found += f"{overview.keyed:,} of {looked_at} have a key"
    if overview.same_key:
        found += f", {overview.same_key:,} the same as another"
    remedy = "they arrive behind what their consumer has seen since; check that it can take that"
    return _warn("order", f"{found}, and order is not kept: {remedy}")


def number(count: int, *, exact: bool) -> str:
    """How many letters, as people read it."""
    return f"{'' if exact else 'at least '}{count:,} letter{'' if count == 1 else 's'}"


def _count(found: Count) -> str:
    return number(found.number, exact=found.exact)


def _looked_at(overview: Overview) -> str:
    return _oldest(overview.looked_at, overview.count)


def _oldest(looked_at: int, count: int) -> str:
    return "them" if looked_at >= count else f"the oldest {looked_at:,}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(repr(name) for name in names[:_NAMED]) + more


def _ok(name: str, text: str) -> Check:
    return Check(name, Level.OK, text)


def _warn(name: str, text: str) -> Check:
    return Check(name, Level.WARN, text)


def _stop(name: str, text: str) -> Check:
    return Check(name, Level.STOP, text)
