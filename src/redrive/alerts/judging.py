"""One round: what is so, what was so before, and what follows for each incident.

A flood is bounded twice. Of each rule, `LOOKED_AT` things are incidents at most, those that are known first. And
of those that begin, `at_most` are told one by one within the cooldown, or an hour; the others are one message,
which counts them and is over when the last of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from redrive.alerts.conditions import Condition, conditions, key_of, uncounted
from redrive.alerts.explaining import is_explained, is_told_as_critical
from redrive.alerts.incident import (
    Incident,
    begun,
    ended,
    followed,
    is_due,
    told,
    told_among_many,
    worsened,
)
from redrive.alerts.rule import BY_QUEUE, OF_GROUPS, OF_PROCESSES, RuleKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from redrive.alerts.observed import Observed
    from redrive.alerts.rule import AlertRule

LOOKED_AT = 1000


def key_of_many(rule: str) -> str:
    """No subject has a key like it."""
    return f"{rule}/(many)"


def judge(
    rules: Sequence[AlertRule],
    observed: Observed,
    known: Iterable[Incident],
    *,
    mask: Callable[[str], str] = str,
) -> list[Incident]:
    """Incidents that are new or have changed. `known`: those of all rules, of rules that are gone too. `mask` is
    for titles, which hold names that others have given.
    """
    by_rule: dict[str, dict[str, Incident]] = {}
    for each in known:
        by_rule.setdefault(each.rule, {})[each.key] = each
    before = {each.key: each for incidents in by_rule.values() for each in incidents.values()}
    after: dict[str, Incident] = {}
    critical: dict[str, Incident] = {}
    # Causes first, and critical ones before: what an alert about one of them tells, no other has to tell again.
    for rule in sorted(rules, key=_turn):
        own = by_rule.pop(rule.name, {})
        if rule.kind in BY_QUEUE:
            after |= _judged(rule, observed, own, mask, _untold(rule, observed, own, after))
        elif observed.steady or rule.kind not in OF_PROCESSES:
            firing = {each.group_id for each in own.values() if each.is_firing and each.group_id}
            found = [
                each
                for each in conditions(rule, observed, firing)
                if each.group_id in firing
                or not is_told_as_critical(rule, critical.get(each.group_id), observed.at)
            ]
            judged = _judged(rule, observed, own, mask, found)
            after |= judged
            if rule.kind is RuleKind.CRITICAL:
                critical |= {each.group_id: each for each in judged.values() if each.group_id}
    # What no rule asks about any more is over: nobody would ever say so else.
    gone = [each for incidents in by_rule.values() for each in incidents.values()]
    after |= {each.key: ended(each, observed.at) for each in gone}
    return [each for key, each in after.items() if before.get(key) != each]


def _turn(rule: AlertRule) -> int:
    if rule.kind is RuleKind.CRITICAL:
        return 0
    return 1 if rule.kind in OF_GROUPS else 2


def _untold(
    rule: AlertRule, observed: Observed, own: Mapping[str, Incident], after: dict[str, Incident]
) -> list[Condition]:
    """Numbers that no alert about a cause tells. One that is to be told as worse for that is, in `after`."""
    found = []
    for each in conditions(rule, observed, ()):
        known = own.get(key_of(rule.name, each.subject))
        causes = [cause for cause in after.values() if cause.group_id]
        explained, cause = is_explained(rule, each, causes, observed)
        if not explained or (known is not None and known.is_firing):
            found.append(each)
        elif cause is not None:
            worse = worsened(cause, rule.severity)
            after[cause.key] = worse if worse.is_snoozed(observed.at) else told(worse, observed.at)
    return found


def _judged(
    rule: AlertRule,
    observed: Observed,
    before: Mapping[str, Incident],
    mask: Callable[[str], str],
    found: Sequence[Condition],
) -> dict[str, Incident]:
    now, many = observed.at, key_of_many(rule.name)
    more = uncounted(rule, observed, found)
    so = {key_of(rule.name, each.subject): replace(each, title=mask(each.title)) for each in found}
    ordered = sorted(so, key=lambda key: _first(so[key], before.get(key)))
    after = {key: _stepped(rule, so[key], before.get(key), now) for key in ordered[:LOOKED_AT]}
    after |= {key: ended(each, now) for key, each in before.items() if key not in after and key != many}
    at_once = {key for key in after if key in so and so[key].at_once}
    _tell(rule, after, at_once, now)
    beyond = [so[key] for key in ordered[LOOKED_AT:]]
    return after | _about_many(rule, after, beyond, more, before=before.get(many), now=now)


def _first(condition: Condition, before: Incident | None) -> tuple[bool, int, str]:
    return before is None or not before.is_firing, -condition.weight, condition.subject


def _stepped(rule: AlertRule, condition: Condition, before: Incident | None, now: datetime) -> Incident:
    if before is None:
        return begun(rule, condition, None, now)
    if before.is_firing:
        return followed(before, condition, now)
    # Nothing is new twice: it is back, which another rule tells.
    told_before = rule.kind is RuleKind.NEW_GROUP and bool(condition.group_id)
    # An end that nobody was told of yet comes before the next beginning.
    stays = before.held or before.message is not None or told_before
    return before if stays else begun(rule, condition, before, now)


def _tell(rule: AlertRule, after: dict[str, Incident], at_once: Collection[str], now: datetime) -> None:
    without = replace(rule, cooldown=0.0)
    due = [each for key, each in after.items() if is_due(each, without if key in at_once else rule, now)]
    # Whoever was told of a beginning by itself is reminded of it by itself, and told of its end.
    again = [each for each in due if each.told]
    first = sorted((each for each in due if not each.told), key=_weightiest)
    room = max(rule.at_most - sum(_is_recent(each, rule, now) for each in after.values()), 0)
    # One that would be alone in the message about many is told by itself: that is no longer.
    alone = len(first) if len(first) <= room + 1 and room else room
    for each in (*again, *first[:alone]):
        after[each.key] = told(each, now)
    for each in first[alone:]:
        after[each.key] = told_among_many(each, key_of_many(rule.name), now)


def _weightiest(incident: Incident) -> tuple[int, str]:
    return -incident.counts.get("letters", 0), incident.key


def _is_recent(incident: Incident, rule: AlertRule, now: datetime) -> bool:
    """Whether it takes one of the places of this cooldown."""
    at = incident.first_told_at
    return at is not None and not incident.told_as and 0 <= (now - at).total_seconds() < rule.flood


def _about_many(
    rule: AlertRule,
    after: Mapping[str, Incident],
    beyond: Sequence[Condition],
    more: int,
    *,
    before: Incident | None,
    now: datetime,
) -> dict[str, Incident]:
    """`beyond`: what is so and has no place among the incidents, and `more` that nobody has looked at one by one.
    They are counted all the same.
    """
    key = key_of_many(rule.name)
    members = [each for each in after.values() if each.is_firing and each.told_as == key]
    number = len(members) + len(beyond) + more
    if not number:
        return {} if before is None else {key: ended(before, now)}
    if before is not None and before.held and number > before.told_of:
        before = replace(before, held=False)  # what somebody has said holds for those of then
    stepped = replace(_stepped(rule, _counted(rule, number, [*members, *beyond]), before, now), key=key)
    # It is told again when there are more, not oftener than once in a cooldown.
    grown = stepped.told and number > stepped.told_of
    bounded = replace(rule, cooldown=rule.flood)
    if is_due(replace(stepped, told=False) if grown else stepped, bounded, now):
        return {key: replace(told(stepped, now), told_of=number, acknowledged_by=None, acknowledged_at=None)}
    # Those that are over make room for as many others, which nobody has been told of.
    return {key: replace(stepped, told_of=min(stepped.told_of, number))}


def _counted(rule: AlertRule, number: int, members: Sequence[Incident | Condition]) -> Condition:
    things = "failures" if rule.kind in OF_GROUPS else "things"
    counts = {things: number}
    if letters := sum(each.counts.get("letters", 0) for each in members):
        counts["letters"] = letters
    what = _MANY.get(rule.kind, f"Rule {rule.name} holds for {{number:,}} more")
    path = "/groups" if rule.kind in OF_GROUPS else "/alerts"
    return Condition(subject="", title=what.format(number=number), counts=counts, path=path)


_MANY = {
    RuleKind.NEW_GROUP: "{number:,} more new failures",
    RuleKind.RETURNING_GROUP: "{number:,} more failures are back",
    RuleKind.ACCELERATING_GROUP: "{number:,} more failures come ever faster",
    RuleKind.CRITICAL: "{number:,} more critical failures",
}
