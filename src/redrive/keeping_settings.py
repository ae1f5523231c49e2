"""Settings of how long letters stay, and where they go then: see `redrive.settings`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from redrive.errors import ConfigurationError
from redrive.section import Section
from redrive.setting_values import (
    OptionalPath,
    OptionalRate,
    OptionalSeconds,
    OptionalTimeout,
    OptionalUrl,
    Positive,
    Seconds,
    unset,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redrive.secret_url import SecretUrl


def _place(url: SecretUrl | None) -> SecretUrl | None:
    """ValueError for one that nobody could copy to: told at the start, not when the first archive is due."""
    if url is not None:
        from redrive.upkeep.archive_places import open_place  # noqa: PLC0415  only those who have one load it

        try:
            open_place(url.reveal())
        except ConfigurationError as error:
            raise ValueError(f"is no place for copies: {error}; {error.remedy}") from None
    return url


class DeadLetterSettings(Section):
    sink: Literal["store", "queue", "both"] = "store"
    """Where a letter goes first; the other one and the spool take it when that is away. Both: into the store and
    into the dead-letter queue.
    """
    expire_after: OptionalSeconds = None
    """PENDING letters of a queue that says so itself become DISCARDED (how=expired) when they are older than this.
    None: never. The general value is only how long, for queues that say `expire = true`. S2: DeadLetterTtlHours.
    """
    assume_after: OptionalTimeout = None
    """REDRIVEN letters that were sent so long ago, and of which nothing was heard, become RESOLVED (how=assumed):
    for consumers that are not ours. None: never.
    """
    notify_critical: bool = True
    """Log critical failures at critical level and call the app's on_critical. S2: EnableAdminNotifications."""


class QueueDeadLetterSettings(DeadLetterSettings):
    """One queue's; what it does not say [dead_letters] says, but for whether its letters expire."""

    expire: Annotated[bool | None, BeforeValidator(unset)] = None
    """True: they do, after the general time if the queue has none of its own; False: they do not. None: they do if
    the queue has an `expire_after` of its own.
    """

    @model_validator(mode="after")
    def _has_a_time(self) -> QueueDeadLetterSettings:
        if self.expire and self.expire_after is None:
            raise ValueError("expire = true needs a time: set expire_after, here or in [dead_letters]")
        return self


class QueueRetentionSettings(Section):
    """One queue's. What it says counts before anything that [retention] says."""

    keep: OptionalSeconds = None
    """None: as [retention] says."""
    keep_discarded: OptionalSeconds = None
    """None: as `keep` here, else as [retention] says."""


class RetentionSettings(Section):
    """What leaves the store: RESOLVED and DISCARDED letters (S1: after 90 days)."""

    keep: Seconds = 90 * 86400.0
    """Since the letter's status changed last."""
    keep_discarded: OptionalSeconds = None
    """Of DISCARDED letters. None: as `keep`."""
    every: OptionalTimeout = None
    """How often `redrive serve` does it by itself, one process of all. None: only `redrive retention run` does."""
    rate: OptionalRate = None
    """Letters per second that are purged. None: as fast as it goes."""
    archive: OptionalPath = Path(".redrive/archive")
    """None: purged without being archived."""
    copy_to: Annotated[OptionalUrl, AfterValidator(_place)] = None
    """`file:///FOLDER`: every archive has to be there too before anything of it is purged. None: no copies."""
    batch: Annotated[Positive, Field(le=100_000)] = 500
    """Letters of one archive file."""


def expiring_alone(letters: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing of a queue expires that has not asked for it itself: `expire_after` is left where it has (T19)."""
    asked = own.get("expire", "expire_after" in own)
    return {key: value for key, value in letters.items() if asked or key != "expire_after"}
