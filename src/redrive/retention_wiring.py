"""How long letters are kept, and who takes them out by itself, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.clock import own_name
from redrive.encryption_wiring import file_keys
from redrive.keeping import Keep, KeepRules
from redrive.upkeep.archive import Archive
from redrive.upkeep.archive_places import open_place
from redrive.upkeep.clock_note import ClockNote
from redrive.upkeep.retention import Retention
from redrive.upkeep.retention_duty import DUTY, RetentionDuty

if TYPE_CHECKING:
    from redrive.clock import Clock
    from redrive.keeping_settings import QueueRetentionSettings, RetentionSettings
    from redrive.settings import Settings
    from redrive.stores import Store


def keep_rules(settings: Settings) -> KeepRules:
    """A queue's own word first, for all of its letters or for the DISCARDED ones, then the general one."""
    general = settings.retention
    queues = {
        name: _of_queue(queue.retention, general)
        for name, queue in settings.queues.items()
        if queue.retention.keep is not None or queue.retention.keep_discarded is not None
    }
    return KeepRules(Keep(general.keep, _or(general.keep_discarded, general.keep)), queues)


def archive_of(settings: Settings) -> Archive | None:
    """Where letters go that leave the store; None: nowhere."""
    folder, copies = settings.retention.archive, settings.retention.copy_to
    if folder is None:
        return None
    return Archive(folder, file_keys(settings), None if copies is None else open_place(copies.reveal()))


async def serve_retention(settings: Settings, store: Store, clock: Clock) -> None:
    """Until it is cancelled; returns at once if the settings do not ask for it."""
    given = settings.retention
    if given.every is None:
        return
    archive = archive_of(settings)

    def make() -> Retention:
        note = ClockNote(store, clock)
        return Retention(store=store, archive=archive, clock=clock, clock_note=note, actor=DUTY)

    duty = RetentionDuty(
        keep_rules(settings),
        make,
        store=store,
        clock=clock,
        holder=own_name(),
        every=given.every,
        batch=given.batch,
        rate=given.rate,
    )
    await duty.serve()


def _of_queue(own: QueueRetentionSettings, general: RetentionSettings) -> Keep:
    discarded = _or(own.keep, _or(general.keep_discarded, general.keep))
    return Keep(_or(own.keep, general.keep), _or(own.keep_discarded, discarded))


def _or(own: float | None, otherwise: float) -> float:
    return otherwise if own is None else own
