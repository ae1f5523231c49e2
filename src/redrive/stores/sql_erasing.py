"""Erasures in a store on SQL. What becomes of one is a guarded update, with its row of the ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import delete, select, update

from redrive.approvals import same_person
from redrive.clock import new_id
from redrive.dead_letter import Status
from redrive.erasure import Erasure, ErasureStatus
from redrive.errors import NotFound, Refused
from redrive.ledger import ERASURE, LETTERS, Deed, Subject
from redrive.stores import sql_audit, sql_groups
from redrive.stores.expressions import lots
from redrive.stores.schema import audit, letters
from redrive.stores.schema_erasures import erasures
from redrive.stores.sql_secrets import ERASURE_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from sqlalchemy import Connection, Row

    from redrive.clock import Clock
    from redrive.dead_letter import Actor
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")

REQUESTED, APPROVED, REJECTED, ENDED = (
    "erasure requested",
    "erasure approved",
    "erasure rejected",
    "erasure ended",
)


class SqlErasing(ABC):
    _clock: Clock
    _ledger: Ledger

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    async def _change(self, unit: Callable[[Connection], T], letters: int = 1) -> T:
        """As `_write`, for what changes so many letters."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    @abstractmethod
    async def _secret(self, name: str, value: bytes | None = None) -> bytes:
        """A secret that the store makes once."""

    async def erasure_key(self) -> bytes:
        return await self._secret(ERASURE_KEY)

    async def request_erasure(
        self, subject: frozenset[str], *, found: int, expires_at: datetime, by: Actor
    ) -> Erasure:
        erasure = Erasure(
            id=new_id(),
            status=ErasureStatus.REQUESTED,
            subject=subject,
            requested_by=by.name,
            reason=by.reason,
            requested_at=self._clock.now(),
            expires_at=expires_at,
            found=found,
        )

        def unit(connection: Connection) -> Erasure:
            connection.execute(erasures.insert(), _values(erasure))
            self._note_erasure(connection, REQUESTED, erasure, by=by)
            return erasure

        return await self._write(unit)

    async def erasure(self, erasure_id: str) -> Erasure | None:
        return await self._read(lambda connection: _find(connection, erasure_id))

    async def erasures(self, *, limit: int = 50) -> list[Erasure]:
        query = select(erasures).order_by(erasures.c.id.desc()).limit(limit)
        return await self._read(lambda connection: [_erasure_of(row) for row in connection.execute(query)])

    async def approve_erasure(self, erasure_id: str, *, by: Actor) -> Erasure:
        now = self._clock.now()

        def unit(connection: Connection) -> Erasure:
            found = _locked(connection, erasure_id)
            if found.status is ErasureStatus.APPROVED:
                return found
            _check_status(found)
            if found.expires_at <= now:
                raise Refused(
                    f"erasure {found.id} was asked for too long ago to be approved", remedy="ask for it anew"
                )
            if same_person(by.name, found.requested_by):
                raise Refused(
                    f"erasure {found.id} was requested by {found.requested_by}: nobody approves their own",
                    remedy="somebody else has to approve it, from an account of their own",
                )
            approved = _changed(connection, found, status=ErasureStatus.APPROVED, approved_by=by.name)
            self._note_erasure(connection, APPROVED, approved, by=by)
            return approved

        return await self._write(unit)

    async def reject_erasure(self, erasure_id: str, *, by: Actor) -> Erasure:
        def unit(connection: Connection) -> Erasure:
            found = _locked(connection, erasure_id)
            _check_status(found)
            rejected = _changed(connection, found, status=ErasureStatus.REJECTED, ended_at=self._clock.now())
            self._note_erasure(connection, REJECTED, rejected, by=by)
            return rejected

        return await self._write(unit)

    async def erase(self, erasure_id: str, letter_ids: Sequence[str], *, by: Actor) -> Mapping[str, Status]:
        unit = partial(_erase, erasure_id=erasure_id, letter_ids=letter_ids, by=by, ledger=self._ledger)
        return await self._change(partial(unit, now=self._clock.now()), len(letter_ids))

    async def erased(self, letter_ids: Sequence[str]) -> AbstractSet[str]:
        return await self._read(lambda connection: tombstones(connection, letter_ids))

    async def end_erasure(self, erasure_id: str, *, by: Actor) -> Erasure:
        def unit(connection: Connection) -> Erasure:
            found = _locked(connection, erasure_id)
            if found.status is not ErasureStatus.APPROVED:
                return found
            ended = _changed(connection, found, status=ErasureStatus.DONE, ended_at=self._clock.now())
            self._note_erasure(connection, ENDED, ended, by=by)
            return ended

        return await self._write(unit)

    def _note_erasure(self, connection: Connection, what: str, erasure: Erasure, *, by: Actor) -> None:
        deed = Deed(what=what, subject=Subject.of(ERASURE, [erasure.id]), after=str(erasure.status))
        self._ledger.write(connection, deed, by=by, now=self._clock.now())


def _erase(
    connection: Connection,
    erasure_id: str,
    letter_ids: Sequence[str],
    *,
    by: Actor,
    now: datetime,
    ledger: Ledger,
) -> dict[str, Status]:
    found = _locked(connection, erasure_id)
    if found.status is not ErasureStatus.APPROVED:
        raise Refused(f"erasure {found.id} is {found.status}: nothing was erased")
    gone, left = set[str](), dict[str, Status]()
    for lot in lots(sorted(set(letter_ids))):  # everybody locks in the order of ids
        before = _statuses(connection, lot)
        statement = delete(letters).where(letters.c.id.in_(lot), letters.c.status != str(Status.REDRIVING))
        rows = connection.execute(statement.returning(letters.c.id, letters.c.group_id)).all()
        sql_groups.leave(connection, {row.group_id for row in rows})
        elsewhere = set(lot) - before.keys() - tombstones(connection, lot)  # they are in archives alone
        erased = sorted({*(row.id for row in rows), *elsewhere})
        # What people wrote about a letter may tell whom it was about.
        connection.execute(update(audit).where(audit.c.letter_id.in_(erased)).values(reason=""))
        lines = [
            sql_audit.line(sql_audit.ERASED, each, at=now, by=by, before=str(before.get(each, "")))
            for each in erased
        ]
        sql_audit.write(connection, *lines)
        gone |= set(erased)
        left |= {each: status for each, status in before.items() if each not in gone}
    if gone:
        _changed(connection, found, erased=found.erased + len(gone))
        deed = Deed(what=sql_audit.ERASED, subject=Subject.of(LETTERS, sorted(gone)), after=f"erasure {found.id}")
        ledger.write(connection, deed, by=by, now=now)
    return left


def tombstones(connection: Connection, letter_ids: Sequence[str]) -> set[str]:
    """Those of them that were erased."""
    found = set[str]()
    for lot in lots(letter_ids):
        query = select(audit.c.letter_id).where(audit.c.letter_id.in_(lot), audit.c.what == sql_audit.ERASED)
        found |= set(connection.scalars(query))
    return found


def _statuses(connection: Connection, letter_ids: list[str]) -> dict[str, Status]:
    query = select(letters.c.id, letters.c.status).where(letters.c.id.in_(letter_ids)).order_by(letters.c.id)
    return {row.id: Status(row.status) for row in connection.execute(query.with_for_update())}


def _find(connection: Connection, erasure_id: str) -> Erasure | None:
    row = connection.execute(select(erasures).where(erasures.c.id == erasure_id)).one_or_none()
    return None if row is None else _erasure_of(row)


def _locked(connection: Connection, erasure_id: str) -> Erasure:
    row = connection.execute(select(erasures).where(erasures.c.id == erasure_id).with_for_update()).one_or_none()
    if row is None:
        raise NotFound(f"no erasure {erasure_id}", remedy="`redrive erase list` shows the ids")
    return _erasure_of(row)


def _check_status(found: Erasure) -> None:
    if found.status is not ErasureStatus.REQUESTED:
        raise Refused(f"erasure {found.id} is {found.status}")


def _changed(connection: Connection, found: Erasure, **values: Any) -> Erasure:
    """Its row is locked."""
    told = {name: str(value) if isinstance(value, ErasureStatus) else value for name, value in values.items()}
    connection.execute(update(erasures).where(erasures.c.id == found.id).values(**told))
    again = _find(connection, found.id)
    return found if again is None else again


def _values(erasure: Erasure) -> dict[str, Any]:
    told = {name: getattr(erasure, name) for name in erasure.__struct_fields__}
    return told | {"status": str(erasure.status), "subject": " ".join(sorted(erasure.subject))}


def _erasure_of(row: Row[Any]) -> Erasure:
    told = row._asdict()
    given = {"status": ErasureStatus(told["status"]), "subject": frozenset(told["subject"].split())}
    return Erasure(**(told | given))
