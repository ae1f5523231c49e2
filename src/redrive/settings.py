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
from redrive.transports import Names
from redrive.transports.rabbitmq.topology_choice import TOPOLOGIES

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


def _optional_template(value: Any) -> Any:
    return None if value is None else _template(value)


def _optional_url(value: Any) -> Any:
    return None if value is None else _url(value)


def _view(value: Any) -> Any:
    if value is not None and not (isinstance(value, str) and _NAME_IN_SCHEMA.fullmatch(value)):
        raise ValueError("should be a schema and a name, such as 'public.dlq_events', or 'none'")
    return value


SECONDS, BYTES, SECRET = "seconds", "bytes", "secret"
"""Marks on fields, for those who write a value the way people do."""

Seconds = Annotated[float, BeforeValidator(seconds), SECONDS]
Bytes = Annotated[int, BeforeValidator(size), BYTES]
Count = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(_number), Field(ge=1)]
OptionalSeconds = Annotated[Annotated[float, BeforeValidator(seconds)] | None, BeforeValidator(_unset), SECONDS]
OptionalDelays = Annotated[tuple[Seconds, ...] | None, BeforeValidator(_items), BeforeValidator(_unset), SECONDS]
OptionalPath = Annotated[Path | None, BeforeValidator(_unset)]
TypeNames = Annotated[tuple[str, ...], BeforeValidator(_items)]
QueueNames = Annotated[tuple[str, ...], BeforeValidator(_items)]
Url = Annotated[InstanceOf[SecretUrl], BeforeValidator(_url), SECRET]
OptionalUrl = Annotated[
    InstanceOf[SecretUrl] | None, BeforeValidator(_optional_url), BeforeValidator(_unset), SECRET
]
ViewName = Annotated[str | None, BeforeValidator(_view), BeforeValidator(_unset)]
OptionalTemplate = Annotated[str | None, BeforeValidator(_optional_template), BeforeValidator(_unset)]
OptionalPositive = Annotated[Positive | None, BeforeValidator(_unset)]
OptionalName = Annotated[Annotated[str, Field(min_length=1)] | None, BeforeValidator(_unset)]
Timeout = Annotated[Seconds, Field(gt=0)]


class Section(BaseModel):
    """Frozen, refuses keys it does not know, and never quotes a value in an error: it may be a secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class AppSettings(Section):
    """What is written into every failure (S2's EnvironmentMetadata)."""

    name: str = ""
    """Empty: the name given to `App` in code."""
    version: str = ""
    environment: str = ""


class RabbitSettings(Section):
    """For `amqp://` and `amqps://` alone."""

    topology: Literal["delay-queues", "plain-queues", "ttl-loop", "dead-letter-exchange"] = "delay-queues"
    queue_type: Annotated[Literal["quorum", "classic"] | None, BeforeValidator(_unset)] = None
    """Of queues that are made. None: quorum, but for those of plain-queues, which other services declare too."""
    declare: Literal["missing", "never"] = "missing"
    """never: what `redrive setup` has not made is not made."""
    max_priority: Annotated[Annotated[Positive, Field(le=255)] | None, BeforeValidator(_unset)] = None
    """Classic queues only."""
    persistent: bool = True
    """False: what the app sends is lost when the broker stops; retries and dead letters never are. S2:
    EnablePersistence.
    """
    exchange: OptionalName = None
    """ttl-loop: through which messages come back. None: `<app>.workers`."""
    dead_letter_exchange: OptionalName = None
    """None: ttl-loop `<exchange>.deadletter`, dead-letter-exchange `dlx.<app>`. S2: DeadLetterExchange."""
    dead_letter_routing_key: Annotated[str, Field(min_length=1)] = "deadletter"
    """dead-letter-exchange: followed by `.<queue>`. S2: DeadLetterRoutingKey."""
    automatic_dlx: bool = True
    """dead-letter-exchange: whether queues name the exchange in their arguments. S2: EnableAutomaticDlx."""
    dead_letter_ttl: OptionalSeconds = None
    """dead-letter-exchange: what lies longer in `dlq.{queue}` goes to `dlq.{queue}.expired`. None: it stays."""
    heartbeat: Timeout = 30.0
    connect_timeout: Timeout = 5.0
    publish_timeout: Timeout = 20.0
    """How long the broker may take to confirm a message."""
    consumer_timeout: Timeout = 1800.0
    """What the broker is configured to: a delivery that is unsettled for longer is taken back."""
    max_message_size: Bytes = 128 * 2**20
    """What the broker is configured to."""
    management_url: OptionalUrl = None
    """None: the broker's host, port 15672."""
    tls_ca: OptionalPath = None
    """None: the authorities that the system trusts."""
    tls_certificate: OptionalPath = None
    tls_key: OptionalPath = None

    @model_validator(mode="after")
    def _sensible(self) -> RabbitSettings:
        if self.max_priority is not None and self.queue_type != "classic":
            raise ValueError("max_priority needs queue_type = 'classic': quorum queues take none")
        if self.tls_key is not None and self.tls_certificate is None:
            raise ValueError("tls_key needs tls_certificate")
        return self


class BrokerSettings(Section):
    url: Url = SecretUrl("embedded:///redrive-broker.db")
    """`embedded:///FILE` is relative to the working folder, `embedded:////FILE` is absolute; or
    `amqps://USER:PASSWORD@HOST/VHOST`.
    """
    retry_queue: OptionalTemplate = None
    """None: `{queue}_retry`, or as the topology has it."""
    dead_letter_queue: OptionalTemplate = None
    """None: `{queue}_dlq`, or as the topology has it."""
    lease: Timeout = 60.0
    """How long a delivery belongs to a worker that no longer says it lives. Embedded broker only."""
    rabbitmq: RabbitSettings = RabbitSettings()

    @property
    def on_rabbitmq(self) -> bool:
        return self.url.reveal().partition(":")[0] in {"amqp", "amqps"}

    @property
    def loops(self) -> bool:
        """The broker itself brings failed messages back, by [queues.NAME.loop]."""
        return self.on_rabbitmq and self.rabbitmq.topology == "ttl-loop"

    @property
    def names(self) -> Names:
        """As they are set, else as the broker's topology has them."""
        usual = TOPOLOGIES[self.rabbitmq.topology].templates if self.on_rabbitmq else Names()
        return Names(retry=self.retry_queue or usual.retry, dead=self.dead_letter_queue or usual.dead)

    @model_validator(mode="after")
    def _distinct(self) -> BrokerSettings:
        if self.names.retry == self.names.dead:
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
    prefetch: OptionalPositive = None
    """Messages of one queue fetched and not settled. None: as many as concurrency."""
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
    sink: Literal["store", "queue", "both"] = "store"
    """Where a letter goes first; the other one and the spool take it when that is away. Both: into the store and
    into the dead-letter queue.
    """
    expire_after: OptionalSeconds = None
    """PENDING letters older than this become DISCARDED (how=expired). None: never. S2: DeadLetterTtlHours."""
    notify_critical: bool = True
    """Log critical failures at critical level and call the app's on_critical. S2: EnableAdminNotifications."""


class LoopSettings(Section):
    """Of topology ttl-loop: S4's ten minutes, three times."""

    ttl: Timeout = 600.0
    cycles: Count = 3


class QueueSettings(HandlingSettings):
    """One queue's own values; what is not set comes from [worker], [retry] and [dead_letters]."""

    kinds: KindsSettings = KindsSettings()
    """Weighed before what the app says in code; [kinds] is weighed after it."""
    retry: RetrySettings = RetrySettings()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    loop: LoopSettings = LoopSettings()
    """With topology ttl-loop it stands in the place of `retry`."""


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


class CollectorSettings(Section):
    """What `redrive collect` brings in."""

    queues: QueueNames = ()
    """Dead-letter queues, limbo queues: wherever others put what failed."""


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
    collector: CollectorSettings = CollectorSettings()
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
