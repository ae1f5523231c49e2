"""Which environment a store belongs to: said once, kept in it, and asked before anything else is done with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import delete

from redrive.errors import ConfigurationError
from redrive.ledger import STORE, Deed, Subject
from redrive.stores.schema import secrets
from redrive.stores.sql_secrets import ENVIRONMENT, find_secret, keep_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from redrive.clock import Clock
    from redrive.dead_letter import Actor
    from redrive.stores.sql_ledger import Ledger

T = TypeVar("T")


class SqlEnvironment(ABC):
    _clock: Clock
    _ledger: Ledger
    _expected = ""
    _is_known = False

    @abstractmethod
    async def _write(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one durable transaction."""

    @abstractmethod
    async def _read(self, unit: Callable[[Connection], T]) -> T:
        """Runs the unit in one transaction that sees one moment."""

    def belong_to(self, environment: str) -> None:
        self._expected, self._is_known = environment, False

    async def environment(self) -> str:
        return await self._read(_kept)

    async def rename_environment(self, environment: str, *, by: Actor) -> str:
        now = self._clock.now()

        def unit(connection: Connection) -> str:
            before = _kept(connection)
            if before == environment:
                return before
            connection.execute(delete(secrets).where(secrets.c.name == ENVIRONMENT))
            if environment:
                keep_secret(connection, ENVIRONMENT, environment.encode(), now)
            deed = Deed(
                what="environment", subject=Subject.of(STORE, ("store",)), before=before, after=environment
            )
            self._ledger.write(connection, deed, by=by, now=now)
            return before

        return await self._write(unit)

    def _belonging(self, unit: Callable[[Connection], T], *, writes: bool) -> Callable[[Connection], T]:
        """The unit, which does nothing in the store of another environment."""
        if not self._expected or self._is_known:
            return unit

        def checked(connection: Connection) -> T:
            self._check(connection, writes=writes)
            return unit(connection)

        return checked

    def _check(self, connection: Connection, *, writes: bool) -> None:
        kept = _kept(connection)
        # Known only once it was found: what this transaction keeps may be rolled back with it.
        self._is_known = kept == self._expected
        if not kept and writes:
            kept = keep_secret(connection, ENVIRONMENT, self._expected.encode(), self._clock.now()).decode()
        if kept and kept != self._expected:
            raise ConfigurationError(
                f"this store belongs to environment {kept!r}, the settings say {self._expected!r}",
                remedy="correct store.url or app.environment; "
                "`redrive db environment NAME --reason` renames the store's",
            )


def _kept(connection: Connection) -> str:
    """Empty: it belongs to none yet."""
    return (find_secret(connection, ENVIRONMENT) or b"").decode()
