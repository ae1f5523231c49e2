"""A store in which everything that can be named has one of those texts: letters, groups, runs, alerts, people."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from browser.conftest import a_user
from redrive.access import Grant, Role
from redrive.accounts import ApiToken, KeptToken
from redrive.alerts.alert import Severity
from redrive.alerts.incident import Incident, IncidentStatus
from redrive.clock import new_id
from redrive.dead_letter import Actor, Entry, Fingerprint
from redrive.editing import Rename, Set
from redrive.failure import Failure, FailureKind, Frame, Host, Raised
from redrive.ledger import Deed, Subject
from redrive.ledger_keys import kept_key
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.run import Approval, RunChange, RunPlan
from redrive.stores import open_store
from redrive.watching import DUTY, LEASE
from support.markup import EVERY

if TYPE_CHECKING:
    from redrive.stores import DeadLetterStore, Store
    from redrive.transports import Transport
    from support.desk import Desk

NOW = datetime.now(UTC)
HOUR = NOW.replace(minute=0, second=0, microsecond=0)
IN_AN_HOUR = 14
"""Letters: the overview shows no more groups of a time at once."""
MANY = EVERY[:-3]
"""Those of which many fit on a page."""
NAMES = tuple(text for number, text in enumerate(MANY) if number % 3)
"""Those of runs, users and tokens: enough of each kind."""
MERGED = "merging"
"""A queue with a group for each of them; otherwise each has a queue of its own."""


@dataclass(frozen=True)
class Hostile:
    letters: dict[str, str]
    """The id of each text's letter, and of one that has all of them (`all`)."""
    runs: dict[str, str]


def group_of(text: str, queue: str = "") -> Fingerprint:
    digest = hashlib.sha256(f"{queue}{text}".encode()).hexdigest()
    return Fingerprint(id=digest[:32], title=f"{text}: {text}")


def filled(desk: Desk) -> Hostile:
    async def work(_without_ledger: DeadLetterStore, transport: Transport) -> Hostile:
        for text in filter(str.isprintable, MANY[::4]):  # the broker takes no others
            await transport.send(_entry(text).message, queue=text)
        store = open_store(desk.store_url, ledger_key=kept_key(desk.folder / ".redrive/ledger.key"))
        letters = await _record(store)
        runs = {text: await _run(store, letters[text], text) for text in NAMES}
        await _talk(store)
        await _alert(store)
        await store.close()
        return Hostile(letters, runs)

    found: Hostile = desk.do(work)
    return found


async def _record(store: Store) -> dict[str, str]:
    entries = [_entry(text, at=_moment(number)) for number, text in enumerate(EVERY)]
    merged = [_entry(text, queue=MERGED, at=NOW - timedelta(days=2)) for text in MANY]
    ids = await store.record_together([*entries, _entry(MANY[0], MANY[1:]), *merged])
    return dict(zip((*EVERY, "all"), (letter_id for letter_id, _ in ids), strict=False))


def _moment(number: int) -> datetime:
    """One after the other in the middle of an hour, so many in each, the newest first."""
    return HOUR + timedelta(minutes=30) - timedelta(hours=1 + number // IN_AN_HOUR, seconds=number)


async def _talk(store: Store) -> None:
    """What people write down, each under such a name; and what the ledger keeps of it."""
    for text in EVERY:
        by = Actor(text[:100], reason=text[:1000])
        await store.annotate(group_of(text).id, owner=text[:60], note=text, runbook=text[:200], by=by)
    for number, text in enumerate(NAMES):
        by = Actor(text[:100], reason=text)
        await store.add_user(a_user(text[:64], Role.VIEWER), by=by)
        await store.add_token(_token(text, f"{number:016x}"), by=by)
    for text in NAMES:
        deed = Deed(what=text, subject=Subject(text, (text,)), before=text, after=text)
        await store.note(deed, by=Actor(text, reason=text))


async def _alert(store: Store) -> None:
    """What is over: rules that are not there end what is firing."""
    over = [
        Incident(
            key=f"hostile/{number}",
            id=new_id(),
            rule=text,
            severity=Severity.ERROR,
            status=IncidentStatus.RESOLVED,
            title=text,
            counts={text: number},
            queue=text,
            path=text,
            since=NOW,
            changed_at=NOW,
            ended_at=NOW,
            acknowledged_by=text,
            acknowledged_at=NOW,
            snoozed_until=NOW + timedelta(days=1),
            snoozed_by=text,
        )
        for number, text in enumerate(MANY)
    ]
    await store.take_duty(DUTY, holder="test", every=0.0, lease=LEASE)
    assert len(await store.save_incidents(over, duty=DUTY, holder="test")) == len(over)
    await store.end_duty(DUTY, holder="test", done=False)


def _token(text: str, token_id: str) -> KeptToken:
    token = ApiToken(
        id=token_id,
        name=text[:64],
        grants=(Grant(Role.VIEWER, (text[:200],)),),
        created_at=NOW,
        created_by=text,
        expires_at=NOW + timedelta(days=1),
    )
    return KeptToken(token, hashlib.sha256(text.encode()).digest())


async def _run(store: Store, letter_id: str, text: str) -> str:
    """To a queue of that name, with that in its edit; it waits for an approval, or was cancelled."""
    edit = (Set(path="data", value=msgspec.Raw(json.dumps(text).encode())), Rename(path="metadata", to=text))
    plan = RunPlan(selection=LetterQuery(ids=(letter_id,)), target=text, edit=edit, schema=text, reason=text)
    asked = Approval(digest=plan.digest(1), expires_at=NOW + timedelta(days=1), why=text)
    run = await store.create_run(plan, by=Actor(text[:100], reason=text), approval=asked)
    if len(text) % 2:
        await store.change_run(run.id, RunChange.CANCEL, by=Actor(text[:100], reason=text))
    return run.id


def _failure(text: str, frames: tuple[str, ...]) -> Failure:
    traced = tuple(Frame(each, 7, each, each, own=bool(number % 2)) for number, each in enumerate(frames))
    chain = tuple(Raised(text, text, traced, link) for link in (text, "cause", ""))
    host = Host(name=text, process=1, app=text, app_version=text, environment=text)
    return Failure(attempt=1, at=NOW, kind=FailureKind.PERMANENT, handler=text, chain=chain, host=host)


def _body(text: str, every: tuple[str, ...], at: datetime) -> dict[str, Any]:
    return {
        "message_id": text,
        "timestamp": at.isoformat(timespec="milliseconds"),
        "version": "1.0",
        "source": text,
        "queue": text,
        "data": {"nested": [text, {text: [text]}]} | {each: each for each in every},
        "metadata": {"correlation_id": text, "event_type": text, text: text},
        "error": None,
        "retry_count": 0,
    }


def _entry(text: str, others: tuple[str, ...] = (), *, queue: str = "", at: datetime = NOW) -> Entry:
    """Everything in it is that text; where there is room for more, it is the others too."""
    every = (text, *others)
    message = Message(
        id=text,
        queue=queue or text,
        body=json.dumps(_body(text, every, at)).encode(),
        sent_at=at,
        headers=(("nested", {text: [text]}), ("table", {text: text}), *((each, each) for each in every)),
        key=text.encode(),
        source=text,
    )
    return Entry(
        identity=text + new_id(),
        message=message,
        queue=queue or text,
        handler=text,
        failures=(_failure(text, every[:60]),),
        fingerprint=group_of(text, queue),
        at=at,
        first_attempt_at=at,
        quarantine=text if others else None,
        lane=text,
    )
