"""Letters of queues whose names are alike, each queue with a mark of its own in every field that can hold one, and
every question that can be asked of a store within a scope.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.structs import replace

from redrive.access import fits
from redrive.dead_letter import Fingerprint, Transition
from redrive.insights import GroupOrder, GroupQuery
from redrive.letter_query import MAX_PAGE, LetterQuery
from redrive.search_terms import Field, Filter, TextTerm
from redrive.statistics import HandlerTally
from redrive.testing.letters import NOON, a_failure, a_group, a_message, an_entry
from redrive.testing.store_case import ANN, ENGINE, claimed, sent

if TYPE_CHECKING:
    from redrive.access import Scope
    from redrive.dead_letter import Entry
    from redrive.stores import RunStore
    from redrive.stores.insight_store import InsightStore

QUEUES = ("orders", "orders_eu", "pay", "Pay", "pay%", "pay_", "p\u00e4y")
COMMON_WORD = "stumbled"
_COUNTED = (Field.QUEUE, Field.TYPE, Field.HANDLER, Field.STATUS, Field.EVENT, Field.GROUP, Field.OWNER)
_LONG_AGO, _IN_LONG = NOON.replace(year=2000), NOON.replace(year=2200)
_EARLY, _LATE = NOON - timedelta(hours=9), NOON + timedelta(hours=9)


def mark_of(queue: str) -> str:
    """Found wherever something of this queue is told, and nowhere else."""
    return f"mark{'abcdefg'[QUEUES.index(queue)]}q"


def fitting(within: Scope) -> list[str]:
    """By the definition."""
    return [queue for queue in QUEUES if within is None or any(fits(queue, each) for each in within)]


class Shelf(NamedTuple):
    ids: dict[str, list[str]]
    """Of each queue: one that is PENDING, one that was sent and confirmed, one that was refused when it was sent,
    and one that is QUARANTINED.
    """
    groups: dict[str, str]

    @property
    def every_id(self) -> list[str]:
        return [each for ids in self.ids.values() for each in ids]

    def inside(self, within: Scope) -> set[str]:
        return {each for queue in fitting(within) for each in self.ids[queue]}


def marked_entry(queue: str, place: int = 0) -> Entry:
    mark, hours = mark_of(queue), QUEUES.index(queue)
    at = NOON - timedelta(hours=hours, minutes=place)
    message = a_message(
        queue=queue,
        body=f'{{"note": "{mark}", "event_type": "{mark}.event", "correlation_id": "{mark}-c"}}'.encode(),
        headers=(("tenant", mark),),
        source=f"{mark}-source",
    )
    failure = a_failure(at=at, type=f"{mark}.Error", text=f"{mark} {COMMON_WORD}", handler=f"{mark}_handler")
    entry = an_entry(queue=queue, handler=f"{mark}_handler", message=message, failures=(failure,), at=at)
    return replace(entry, fingerprint=Fingerprint(id=a_group(mark).id, title=f"Error: {mark}"))


async def fill(store: RunStore) -> Shelf:
    entries = [marked_entry(queue, place) for queue in QUEUES for place in range(4)]
    recorded = [letter_id for letter_id, _ in await store.record_together(entries)]
    ids = {queue: recorded[4 * place : 4 * place + 4] for place, queue in enumerate(QUEUES)}
    groups = {queue: a_group(mark_of(queue)).id for queue in QUEUES}
    for queue, (_, confirmed, refused, apart) in ids.items():
        await store.confirm((await sent(store, confirmed)).ticket, by=ANN)
        await store.settle(await claimed(store, refused), Transition.REFUSED, by=ENGINE)
        await store.change([apart], Transition.QUARANTINE, by=ANN)
        await store.annotate(groups[queue], owner=f"{mark_of(queue)}-team", note=mark_of(queue), by=ANN)
    tallies = [HandlerTally(f"{mark_of(queue)}_handler", queue, 10, 1) for queue in QUEUES]
    await store.tally([*tallies, *(HandlerTally("shared", queue, 1, 1) for queue in QUEUES)])
    return Shelf(ids, groups)


async def answers(store: RunStore, shelf: Shelf, within: Scope) -> dict[str, Any]:
    """To every question that takes a scope, by the question's name."""
    query = LetterQuery(within=within, limit=MAX_PAGE)
    by_text = replace(query, where=Filter((TextTerm(text=COMMON_WORD),)))
    by_ids = replace(query, ids=tuple(shelf.every_id))
    limits = {queue: NOON - timedelta(minutes=2) for queue in QUEUES}
    return {
        "find": await store.find(replace(query, bodies=True)),
        "find by text": await store.find(by_text),
        "find by ids": await store.find(by_ids),
        "count": [await store.count(each) for each in (query, by_text, by_ids)],
        "overview": await store.overview(query),
        "overview by text": await store.overview(by_text),
        "count_older": await store.count_older(query, limits),
        "get": [await store.get(ids[0], within=within) for ids in shelf.ids.values()],
        "inside": await store.inside(shelf.every_id, within),
        "whole": [each async for each in store.whole(shelf.every_id, within=within)],
        "whole without story": [each async for each in store.whole(shelf.every_id, story=False, within=within)],
        "known_values": {field: await store.known_values(field, within=within) for field in _COUNTED},
        "groups": await store.groups(within=within, limit=MAX_PAGE),
        "group": [await store.group(each, within=within) for each in shelf.groups.values()],
        "statistics": await store.statistics(older_than=NOON - timedelta(hours=2), within=within),
        "top_errors": await store.top_errors(within=within),
        "error_rate": await store.error_rate(since=_EARLY, until=_LATE, within=within),
        "by_event_type": await store.by_event_type(within=within),
        "time_to_resolve": await store.time_to_resolve(within=within),
        "search_backlog": await store.search_backlog(within=within),
        **await _insights(cast("InsightStore", store), shelf, within),
    }


async def _insights(store: InsightStore, shelf: Shelf, within: Scope) -> dict[str, Any]:
    ids, groups = [each[0] for each in shelf.ids.values()], shelf.groups.items()
    query = LetterQuery(within=within)
    by_text = replace(query, where=Filter((TextTerm(text=COMMON_WORD),)))
    return {
        "situation": await store.situation(_LONG_AGO, _IN_LONG, within=within),
        "arrivals": await store.arrivals(_EARLY, _LATE, groups=20, within=within),
        "seen_groups": await store.seen_groups(_EARLY, _LATE, limit=20, within=within),
        "group_page": [await store.group_page(GroupQuery(order=each), within=within) for each in GroupOrder],
        "group_attempts": [await store.group_attempts(each, within=within) for _, each in groups],
        "group_redrives": [await store.group_redrives(each, within=within) for _, each in groups],
        "samples": [
            await store.samples(each, queue, number=9, largest=10**6, within=within) for queue, each in groups
        ],
        "facets": [await store.facets(each, at_most=100) for each in (query, by_text)],
        "related": [await store.related(each, limit=9, within=within) for each in ids],
    }
