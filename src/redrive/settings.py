"""Every setting, its unit, its default and its special values. Nothing is read here: `configuration` does.

Durations are seconds once read; people write `"250ms"`, `"5s"`, `"1h30m"` or a number of seconds. Sizes are
bytes; people write `"64MiB"`. `None` is unset, and written `"none"`; `0` is a value like any other.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    model_validator,
)

from redrive.duration import seconds
from redrive.policy import MAX_IN_PLACE
from redrive.secret_url import SecretUrl

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|kB|MB|GB)?\s*")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_NAME_IN_SCHEMA = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*")
_T = TypeVar("_T")


def size(value: object) -> int:
    """A size in bytes. ValueError with the accepted forms for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a size: write it like '64MiB', '500kB' or a number of bytes")
    return int(float(found[1]) * _UNITS[found[2] or "B"])


def _number(value: _T) -> _T:
    if isinstance(value, bool):  # Python takes true for 1
        raise ValueError("should be a number, not true or false")  # noqa: TRY004  pydantic collects ValueErrors
    return value


def _unset(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def _items(value: Any) -> Any:
    # A variable holds one text; a file holds a list.
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _url(value: Any) -> Any:
    if isinstance(value, SecretUrl):
        return value
    if not isinstance(value, str) or "://" not in value:
        raise ValueError("should be a URL such as 'sqlite:///redrive.db'")  # the value may be a secret
    return SecretUrl(value.strip())


def _template(value: Any) -> Any:
    if (
        not isinstance(value, str)
        or value.count("{queue}") != 1
        or re.search(r"[{}]", value.replace("{queue}", ""))
    ):
        raise ValueError("should hold {queue} once and no other braces, such as '{queue}_dlq'")
    if value == "{queue}":
        raise ValueError("should add something to {queue}, or it would be the queue itself")
    return value


def _view(value: Any) -> Any:
    if value is not None and not (isinstance(value, str) and _NAME_IN_SCHEMA.fullmatch(value)):
        raise ValueError("should be a schema and a name, such as 'public.dlq_events', or 'none'")
    return value


SECONDS, BYTES = "seconds", "bytes"
"""Marks on fields, for those who write a value the way people do."""

Seconds = Annotated[float, BeforeValidator(seconds), SECONDS]
Bytes = Annotated[int, BeforeValidator(size), BYTES]
Count = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(_number), Field(ge=1)]
OptionalSeconds = Annotated[Annotated[float, BeforeValidator(seconds)] | None, BeforeValidator(_unset), SECONDS]
OptionalDelays = Annotated[tuple[Seconds, ...] | None, BeforeValidator(_items), BeforeValidator(_unset), SECONDS]
OptionalPath = Annotated[Path | None, BeforeValidator(_unset)]
TypeNames = Annotated[tuple[str, ...], BeforeValidator(_items)]
Url = Annotated[InstanceOf[SecretUrl], BeforeValidator(_url)]
ViewName = Annotated[str | None, BeforeValidator(_view), BeforeValidator(_unset)]
Template = Annotated[str, BeforeValidator(_template)]


class Section(BaseModel):
    """Frozen, refuses keys it does not know, and never quotes a value in an error: it may be a secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class AppSettings(Section):
    """What is written into every failure (S2's EnvironmentMetadata)."""

    name: str = ""
    """Empty: the name given to `App` in code."""
    version: str = ""
    environment: str = ""


class BrokerSettings(Section):
    url: Url = SecretUrl("embedded:///redrive-broker.db")
    """`embedded:///FILE` is relative to the working folder, `embedded:////FILE` is absolute."""
    retry_queue: Template = "{queue}_retry"
    dead_letter_queue: Template = "{queue}_dlq"
    lease: Annotated[Seconds, Field(gt=0)] = 60.0
    """How long a delivery belongs to a worker that no longer says it lives."""

    @model_validator(mode="after")
    def _distinct(self) -> BrokerSettings:
        if self.retry_queue == self.dead_letter_queue:
            raise ValueError("retry_queue and dead_letter_queue should differ")
        return self


with warnings.catch_warnings():
    # The word that PostgreSQL has for it. pydantic has a method of that name, deprecated, which nobody calls here.
    warnings.filterwarnings("ignore", 'Field name "schema"')

    class StoreSettings(Section):
        url: Url = SecretUrl("sqlite:///redrive.db")
        """`sqlite:///FILE` is relative to the working folder; or `postgresql://USER:PASSWORD@HOST/DATABASE`, for
        which the rest is meant.
        """
        schema: str = "redrive"  # type: ignore[assignment]  # see above
        """Where the tables live; nothing outside of it is touched, but the view."""
        pool_size: Positive = 10
        """Connections of one process, at most."""
        connect_timeout: Annotated[Seconds, Field(gt=0)] = 5.0
        """For a new connection, and for one of the pool to become free."""
        statement_timeout: Seconds = 30.0
        """0: none."""
        lock_timeout: Seconds = 5.0
        """How long a statement waits for what others have locked. 0: for ever."""
        view: ViewName = "public.dlq_events"
        """Letters as S1's table. None: no view."""


class RetrySettings(Section):
    attempts: Positive = 5
    """All attempts, the first included; 1: no retries."""
    schedule: Literal["exponential", "linear", "fixed"] = "exponential"
    initial_delay: Seconds = 5.0
    factor: Annotated[float, BeforeValidator(_number), Field(ge=1, allow_inf_nan=False)] = 2.0
    """Exponential only: each delay is the one before times this."""
    max_delay: Seconds = 300.0
    delays: OptionalDelays = None
    """Set: these delays, then the last one again and again, instead of schedule, initial_delay, factor and
    max_delay.
    """
    jitter: Literal["full", "equal", "none"] = "full"
    immediate: Count = 0
    """Retries in place before the delayed ones; 0: none."""
    immediate_delay: Seconds = 0.1
    budget: OptionalSeconds = None
    """No retry that would come later than this after the first attempt. None: no such limit."""

    @model_validator(mode="after")
    def _sensible(self) -> RetrySettings:
        if self.immediate * self.immediate_delay > MAX_IN_PLACE:
            raise ValueError("immediate times immediate_delay should be at most 5s: they hold up the queue")
        if self.delays is not None and not self.delays:
            raise ValueError("delays should hold at least one delay, or be 'none'")
        if self.delays is None and self.schedule != "fixed" and self.max_delay < self.initial_delay:
            raise ValueError("max_delay should not be shorter than initial_delay")
        return self


class KindsSettings(Section):
    """Exception types by their full name, `package.module.Type`; `*` stands for anything. Subclasses count."""

    transient: TypeNames = ()
    permanent: TypeNames = ()
    critical: TypeNames = ()

    def by_name(self) -> dict[str, str]:
        return {name: kind for kind in type(self).model_fields for name in getattr(self, kind)}


class HandlingSettings(Section):
    """How one queue is worked on."""

    concurrency: Positive = 10
    """Messages of one queue in hand at the same time."""
    handler_timeout: Seconds = 300.0
    """0: none."""
    breaker_failures: Count = 20
    """Transient failures of one type in a row, over different messages, that open the breaker. 0: off."""
    breaker_pause: Seconds = 30.0
    """How long an open breaker waits before it lets one message try."""
    breaker_mode: Literal["pause", "dead_letter"] = "pause"
    """While open: leave the messages in the queue, or dead-letter them unhandled (S0's other choice)."""


class WorkerSettings(HandlingSettings):
    grace: Seconds = 30.0
    """After SIGTERM: how long handlers may finish. 0: they are cancelled at once."""


class DeadLetterSettings(Section):
    sink: Literal["store", "queue"] = "store"
    """Where a letter goes first; the other one and the spool take it when that is away."""
    expire_after: OptionalSeconds = None
    """PENDING letters older than this become DISCARDED (how=expired). None: never. S2: DeadLetterTtlHours."""
    notify_critical: bool = True
    """Log critical failures at critical level and call the app's on_critical. S2: EnableAdminNotifications."""


class QueueSettings(HandlingSettings):
    """One queue's own values; what is not set comes from [worker], [retry] and [dead_letters]."""

    kinds: KindsSettings = KindsSettings()
    """Weighed before what the app says in code; [kinds] is weighed after it."""
    retry: RetrySettings = RetrySettings()
    dead_letters: DeadLetterSettings = DeadLetterSettings()


class SpoolSettings(Section):
    folder: Path = Path(".redrive/spool")
    max_size: Bytes = 256 * 2**20
    """At the limit nothing more is acknowledged."""


class JournalSettings(Section):
    path: Path = Path(".redrive/journal.db")


class RetentionSettings(Section):
    """What `redrive retention run` takes out of the store: RESOLVED and DISCARDED letters (S1: after 90 days)."""

    keep: Seconds = 90 * 86400.0
    """Since the letter's status changed last."""
    archive: OptionalPath = Path(".redrive/archive")
    """None: purged without being archived."""
    batch: Annotated[Positive, Field(le=100_000)] = 500
    """Letters of one archive file."""
    clock_note: Path = Path(".redrive/retention-clock.json")
    """What the clock said at the last run, to find out whether it jumped."""


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """S2's EnableDetailedLogging is `debug`."""
    format: Literal["auto", "json", "console"] = "auto"
    """auto: console on a terminal, else JSON lines."""


class Settings(Section):
    app: AppSettings = AppSettings()
    broker: BrokerSettings = BrokerSettings()
    store: StoreSettings = StoreSettings()
    kinds: KindsSettings = KindsSettings()
    retry: RetrySettings = RetrySettings()
    worker: WorkerSettings = WorkerSettings()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    spool: SpoolSettings = SpoolSettings()
    journal: JournalSettings = JournalSettings()
    retention: RetentionSettings = RetentionSettings()
    log: LogSettings = LogSettings()
    queues: dict[str, QueueSettings] = {}

    def for_queue(self, name: str) -> QueueSettings:
        """The queue's own values over the general ones."""
        if name in self.queues:
            return self.queues[name]
        general = {key: getattr(self.worker, key) for key in HandlingSettings.model_fields}
        return QueueSettings(**general, retry=self.retry, dead_letters=self.dead_letters)

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, values: Any) -> Any:
        """Lays the general values under each queue's own, so that the combination is what is checked."""
        queues = _given(values).get("queues")
        if not isinstance(queues, Mapping):
            return values
        general = {key: _given(values.get(key)) for key in ("worker", "retry", "dead_letters")}
        filled = {name: _fill(queue, general) for name, queue in queues.items()}
        return {**values, "queues": filled}


def _fill(queue: Any, general: Mapping[str, Mapping[str, Any]]) -> Any:
    if not isinstance(queue, Mapping | Section):
        return queue  # pydantic says what is wrong with it
    own = _given(queue)
    handling = {key: value for key, value in general["worker"].items() if key in HandlingSettings.model_fields}
    inner = {
        key: {**general[key], **_given(own.get(key))}
        for key in ("retry", "dead_letters")
        if isinstance(own.get(key, {}), Mapping | Section)
    }
    return {**handling, **own, **inner}


def _given(values: Any) -> Mapping[str, Any]:
    """What was set, of a section or of the mapping it will be made of."""
    if isinstance(values, Section):
        return {key: getattr(values, key) for key in values.model_fields_set}
    return values if isinstance(values, Mapping) else {}
