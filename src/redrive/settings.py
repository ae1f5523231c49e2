"""Every setting, its unit, its default and its special values. Nothing is read here: `configuration` does.

Durations are seconds once read; people write `"250ms"`, `"5s"`, `"1h30m"` or a number of seconds. Sizes are
bytes; people write `"64MiB"`. `None` is unset, and written `"none"`; `0` is a value like any other.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)

from redrive.access_settings import AccessSettings, OidcSettings
from redrive.alert_settings import AlertSettings
from redrive.audit_settings import AuditSettings
from redrive.dead_letter import MAX_GENERATIONS
from redrive.encryption_settings import EncryptionSettings
from redrive.kafka_settings import KafkaSettings
from redrive.keeping_settings import (
    DeadLetterSettings,
    QueueDeadLetterSettings,
    QueueRetentionSettings,
    RetentionSettings,
    expiring_alone,
)
from redrive.metrics_settings import MetricsSettings
from redrive.policy import MAX_IN_PLACE
from redrive.rabbitmq_settings import RabbitSettings
from redrive.secret_url import SecretUrl
from redrive.section import Section
from redrive.server_settings import ServerSettings
from redrive.servicebus_paths import DEAD_LETTERS
from redrive.servicebus_settings import ServiceBusSettings
from redrive.setting_values import (
    Bytes,
    Count,
    FieldNameList,
    FilterText,
    JsonPaths,
    OptionalDelays,
    OptionalOrder,
    OptionalPositive,
    OptionalRate,
    OptionalSeconds,
    OptionalSecret,
    OptionalShare,
    OptionalTemplate,
    OptionalWindow,
    Positive,
    QueueNames,
    RuleName,
    Seconds,
    Share,
    Steps,
    Timeout,
    TimeZone,
    TypeNames,
    Url,
    ViewName,
    number,
    unset,
)
from redrive.sqs_settings import SqsSettings
from redrive.tracing_settings import TracingSettings
from redrive.transports import Names
from redrive.transports.rabbitmq.topology_choice import TOPOLOGIES
from redrive.transports.sqs.fifo import ENDING


class AppSettings(Section):
    """What is written into every failure (S2's EnvironmentMetadata)."""

    name: str = ""
    """Empty: the name given to `App` in code."""
    version: str = ""
    environment: str = ""
    """The store belongs to the first one that works with it, and others are refused. Empty: not checked."""


class BrokerSettings(Section):
    url: Url = SecretUrl("embedded:///redrive-broker.db")
    """`embedded:///FILE` is relative to the working folder, `embedded:////FILE` is absolute; or
    `amqps://USER:PASSWORD@HOST/VHOST`, or `kafkas://USER:PASSWORD@HOST,HOST`, or `sqs://REGION`, or
    `servicebus://NAMESPACE`.
    """
    retry_queue: OptionalTemplate = None
    """None: `{queue}_retry`, or as the topology has it."""
    dead_letter_queue: OptionalTemplate = None
    """None: `{queue}_dlq`, or as the topology has it."""
    lease: Timeout = 60.0
    """How long a delivery belongs to a worker that no longer says it lives. Embedded broker only."""
    rabbitmq: RabbitSettings = RabbitSettings()
    kafka: KafkaSettings = KafkaSettings()
    sqs: SqsSettings = SqsSettings()
    servicebus: ServiceBusSettings = ServiceBusSettings()

    @property
    def on_rabbitmq(self) -> bool:
        return self.url.reveal().partition(":")[0] in {"amqp", "amqps"}

    @property
    def on_kafka(self) -> bool:
        return self.url.reveal().partition(":")[0] in {"kafka", "kafkas"}

    @property
    def on_sqs(self) -> bool:
        return self.url.reveal().partition(":")[0] == "sqs"

    @property
    def on_servicebus(self) -> bool:
        return self.url.reveal().partition(":")[0] in {"servicebus", "servicebus-emulator"}

    @property
    def has_server(self) -> bool:
        """Its queues are things that somebody makes; else a file has them all."""
        return self.on_rabbitmq or self.on_kafka or self.on_sqs or self.on_servicebus

    @property
    def loops(self) -> bool:
        """The broker itself brings failed messages back, by [queues.NAME.loop]."""
        return self.on_rabbitmq and self.rabbitmq.topology == "ttl-loop"

    @property
    def names(self) -> Names:
        """As they are set, else as the broker's topology has them."""
        usual = TOPOLOGIES[self.rabbitmq.topology].templates if self.on_rabbitmq else Names()
        ending = ENDING if self.on_sqs else ""
        return Names(
            retry=self.retry_queue or usual.retry, dead=self.dead_letter_queue or usual.dead, ending=ending
        )

    @model_validator(mode="after")
    def _distinct(self) -> BrokerSettings:
        if self.names.retry == self.names.dead:
            raise ValueError("retry_queue and dead_letter_queue should differ")
        dead = "" if self.names.dead == f"{{queue}}/{DEAD_LETTERS}" else self.names.dead
        if self.on_servicebus and "$" in self.names.retry + dead:
            raise ValueError(
                "should name no subqueue of Service Bus, but dead_letter_queue = '{queue}/$DeadLetterQueue': then "
                "dead letters are its own"
            )
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
    factor: Annotated[float, BeforeValidator(number), Field(ge=1, allow_inf_nan=False)] = 2.0
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
    """Messages of one queue whose handlers run at the same time."""
    prefetch: OptionalPositive = None
    """Messages of one queue fetched and not settled, those that are being written to the store included. None: as
    many as concurrency; on SQS and Service Bus twice as many; of ordered queues, and on Kafka, ten times.
    """
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


class LoopSettings(Section):
    """Of topology ttl-loop: S4's ten minutes, three times."""

    ttl: Timeout = 600.0
    cycles: Count = 3


class MaskedSettings(Section):
    """What is hidden beside what is found everywhere, from those who may not see payloads."""

    fields: FieldNameList = ()
    """More names of fields and headers, whole or their last words, however they are spelled."""
    hidden: JsonPaths = ()
    """Places in payloads, with all below them: `customer.name`, `items.*.holder`."""
    shown: JsonPaths = ()
    """Places that are shown whatever their names say; what detectors find there is hidden all the same."""


class MaskingSettings(MaskedSettings):
    enabled: bool = True
    search_key: OptionalSecret = None
    """What hashes of masked values are made with, the same for all who use one store. None: the store's own secret
    alone, so that whoever has a copy of the whole database can try values out.
    """


class QueueMaskingSettings(MaskedSettings):
    """One queue's; what [masking] says holds beside it."""

    enabled: Annotated[bool | None, BeforeValidator(unset)] = None
    """None: as [masking] says."""


class QueueSettings(HandlingSettings):
    """One queue's own values; what is not set comes from [worker], [retry] and [dead_letters]."""

    kinds: KindsSettings = KindsSettings()
    """Weighed before what the app says in code; [kinds] is weighed after it."""
    retry: RetrySettings = RetrySettings()
    dead_letters: QueueDeadLetterSettings = QueueDeadLetterSettings()
    loop: LoopSettings = LoopSettings()
    """With topology ttl-loop it stands in the place of `retry`."""
    redrive_rate: OptionalRate = None
    """Messages per second that the queue gets from a redrive run, at most. None: as the run says."""
    ordered_by: OptionalOrder = None
    """`key` or `header:NAME`: messages of one key stay in their order, also when one of them fails. None: no."""
    masking: QueueMaskingSettings = QueueMaskingSettings()
    retention: QueueRetentionSettings = QueueRetentionSettings()


class SpoolSettings(Section):
    folder: Path = Path(".redrive/spool")
    max_size: Bytes = 256 * 2**20
    """At the limit nothing more is acknowledged."""


class JournalSettings(Section):
    path: Path = Path(".redrive/journal.db")


class CollectorSettings(Section):
    """What `redrive collect` brings in."""

    queues: QueueNames = ()
    """Dead-letter queues, limbo queues: wherever others put what failed."""


class RunSettings(Section):
    """Of redrive runs: what holds where the one who makes a run says nothing else."""

    rate: OptionalRate = None
    """Messages per second. None: as fast as it goes."""
    canary: Steps = ()
    """How many are sent in all before outcomes are waited for, step by step. Empty: no canary."""
    canary_wait: Seconds = 300.0
    at_most_back: Share = 0.2
    """The share of a canary's step that may come back."""
    pause_when_back: OptionalShare = 0.5
    """The share of the last 100 outcomes that came back. None: it does not pause for that."""
    publish_errors: OptionalPositive = 5
    """In a row, then it pauses. None: it does not pause for that."""
    max_backlog: OptionalPositive = None
    """Messages in the target queue, then it pauses. None: it does not pause for that."""

    @model_validator(mode="after")
    def _sensible(self) -> RunSettings:
        if any(later <= earlier for earlier, later in pairwise(self.canary)):
            raise ValueError("canary should rise, such as [1, 5, 50]")
        return self


class EngineSettings(Section):
    """Of whoever carries runs out."""

    in_flight: Annotated[int, Field(ge=2, le=400)] = 200
    """Letters that are claimed and not yet marked as sent: so many can be sent twice if the process is killed."""


class RuleSettings(RunSettings):
    """An automatic rule; what it does not say about its runs comes from [runs]."""

    when: FilterText = ""
    """Which letters, in the filter language."""
    wait: Seconds = 600.0
    """How long a letter has been PENDING and unchanged."""
    at_most: Annotated[Positive, Field(le=MAX_GENERATIONS)] = MAX_GENERATIONS
    """Redrives of one letter."""
    window: OptionalWindow = None
    """Such as "02:00-05:00". None: at any time."""
    time_zone: TimeZone = "UTC"
    """Of the window, such as "Europe/Berlin"."""
    enabled: bool = True
    """False: it makes no runs; those that it has made go on."""

    @model_validator(mode="after")
    def _complete(self) -> RuleSettings:
        if not self.when:
            raise ValueError("should say `when`: a filter that selects its letters")
        return self


class ApprovalSettings(Section):
    """Which redrive runs a second person has to approve: those that any of these rules fits."""

    more_than: Annotated[Count | None, BeforeValidator(unset)] = None
    """Letters. None: any number."""
    queues: QueueNames = ()
    """Letters of these queues, or sent to them."""
    edits: bool = False
    """Runs that change messages, or take letters that were edited before."""
    quarantined: bool | Literal["auto"] = "auto"
    """Runs that take letters out of quarantine. auto: if any rule above is set."""
    rules: bool = False
    """Whether this holds for the runs of automatic rules as well."""
    expires_after: Timeout = 86400.0

    @property
    def asks_about_quarantined(self) -> bool:
        """Whether, with `auto` decided: a team that has approvals at all has them there too."""
        if self.quarantined == "auto":
            return self.more_than is not None or bool(self.queues) or self.edits
        return self.quarantined


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """S2's EnableDetailedLogging is `debug`: a line for each step of each message."""
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
    runs: RunSettings = RunSettings()
    engine: EngineSettings = EngineSettings()
    approval: ApprovalSettings = ApprovalSettings()
    server: ServerSettings = ServerSettings()
    alerts: AlertSettings = AlertSettings()
    masking: MaskingSettings = MaskingSettings()
    audit: AuditSettings = AuditSettings()
    encryption: EncryptionSettings = EncryptionSettings()
    access: AccessSettings = AccessSettings()
    oidc: OidcSettings = OidcSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    queues: dict[str, QueueSettings] = {}  # noqa: RUF012  pydantic copies it
    rules: dict[RuleName, RuleSettings] = {}  # noqa: RUF012  as above

    def for_queue(self, name: str) -> QueueSettings:
        """The queue's own values over the general ones."""
        if name in self.queues:
            return self.queues[name]
        general = {key: getattr(self.worker, key) for key in HandlingSettings.model_fields}
        letters = QueueDeadLetterSettings(**expiring_alone(_given(self.dead_letters), {}))
        return QueueSettings(**general, retry=self.retry, dead_letters=letters)

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, values: Any) -> Any:
        """Lays the general values under each queue's own, so that the combination is what is checked."""
        if not isinstance(values, Mapping):
            return values
        general = {key: _given(values.get(key)) for key in ("worker", "retry", "dead_letters")}
        runs = _given(values.get("runs"))
        queues, rules = (_table(values.get(key)) for key in ("queues", "rules"))
        if queues is not None:
            values = {**values, "queues": {name: _fill(queue, general) for name, queue in queues.items()}}
        if rules is not None:
            values = {**values, "rules": {name: _over(runs, rule) for name, rule in rules.items()}}
        return values


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
    if "dead_letters" in inner:
        inner["dead_letters"] = expiring_alone(inner["dead_letters"], _given(own.get("dead_letters")))
    return {**handling, **own, **inner}


def _over(general: Mapping[str, Any], own: Any) -> Any:
    return {**general, **_given(own)} if isinstance(own, Mapping | Section) else own


def _table(values: Any) -> Mapping[str, Any] | None:
    return values if isinstance(values, Mapping) else None


def _given(values: Any) -> Mapping[str, Any]:
    """What was set, of a section or of the mapping it will be made of."""
    if isinstance(values, Section):
        return {key: getattr(values, key) for key in values.model_fields_set}
    return values if isinstance(values, Mapping) else {}
