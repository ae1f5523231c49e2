"""[broker.rabbitmq]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from redrive.section import Section
from redrive.setting_values import (
    Bytes,
    OptionalName,
    OptionalPath,
    OptionalSeconds,
    OptionalUrl,
    Positive,
    Timeout,
    unset,
)


class RabbitSettings(Section):
    """For `amqp://` and `amqps://` alone."""

    topology: Literal["delay-queues", "plain-queues", "ttl-loop", "dead-letter-exchange"] = "delay-queues"
    queue_type: Annotated[Literal["quorum", "classic"] | None, BeforeValidator(unset)] = None
    """Of queues that are made. None: quorum, but for those of plain-queues, which other services declare too."""
    declare: Literal["missing", "never"] = "missing"
    """never: what `redrive setup` has not made is not made."""
    max_priority: Annotated[Annotated[Positive, Field(le=255)] | None, BeforeValidator(unset)] = None
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
