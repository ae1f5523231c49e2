"""Which files and folders are ours, by the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from redrive.upkeep.examined_disk import Holds, Kept
from redrive.upkeep.spool_segment import look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.settings import Settings

_MEMORY = ":memory:"
_STORE = "the store"


def store_file(settings: Settings) -> Path | None:
    """None: it is on a server, or in memory."""
    url = settings.store.url.reveal()
    if not url.startswith("sqlite:"):
        return None
    from redrive.stores.sqlite_file import path_of  # noqa: PLC0415  SQLAlchemy is slow to import

    return _file(path_of(url))


def broker_file(settings: Settings) -> Path | None:
    """As `store_file`."""
    if settings.broker.has_server:
        return None
    from redrive.transports.embedded import path_of  # noqa: PLC0415  only those who use it

    return _file(path_of(settings.broker.url.reveal()))


def kept_by(settings: Settings) -> Iterator[Kept]:
    store, broker, spool = store_file(settings), broker_file(settings), settings.spool
    if store is not None:
        grows = store.stat().st_size if store.exists() else 0  # what a migration or a VACUUM writes anew
        yield Kept(name=_STORE, path=store, holds=Holds.LETTERS, setting="store.url", sqlite=True, grows=grows)
    if broker is not None:
        yield Kept(name="the broker", path=broker, holds=Holds.LETTERS, setting="broker.url", sqlite=True)
    yield Kept(
        name="the spool",
        path=spool.folder,
        holds=Holds.LETTERS,
        setting="spool.folder",
        grows=max(0, spool.max_size - look(spool.folder).bytes),
        told_elsewhere=True,
        spills=_STORE,
    )
    yield Kept(
        name="the journal",
        path=settings.journal.path,
        holds=Holds.NOTES,
        setting="journal.path",
        sqlite=True,
        told_elsewhere=True,
    )
    yield from _rarely_written(settings)


def _rarely_written(settings: Settings) -> Iterator[Kept]:
    retention, audit, encryption = settings.retention, settings.audit, settings.encryption
    if retention.archive is not None:
        yield Kept(name="the archive", path=retention.archive, holds=Holds.LETTERS, setting="retention.archive")
    if audit.key is None:
        yield Kept(name="the ledger's key", path=audit.key_path, holds=Holds.SECRET, setting="audit.key_path")
    if audit.checkpoints is not None:
        yield Kept(
            name="the ledger's checkpoints",
            path=audit.checkpoints,
            holds=Holds.NOTES,
            setting="audit.checkpoints",
        )
    if encryption.key is None and encryption.enabled:
        yield Kept(
            name="the encryption key",
            path=encryption.key_path,
            holds=Holds.SECRET,
            setting="encryption.key_path",
            told_elsewhere=True,  # it is only ever read
        )


def _file(path: str) -> Path | None:
    return None if path == _MEMORY else Path(path)
