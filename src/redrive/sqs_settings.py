"""[broker.sqs]."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from redrive.section import Section
from redrive.setting_values import OptionalPositive, Seconds, Timeout, unset


def _endpoint(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "@" in value:
        raise ValueError("should be http://HOST:PORT or https://HOST, without credentials, or 'none'")
    return value


class SqsSettings(Section):
    """For `sqs://` alone. Credentials and profiles are found as every tool of AWS finds them."""

    endpoint: Annotated[str | None, BeforeValidator(_endpoint), BeforeValidator(unset)] = None
    """Where SQS is. None: as the environment or the profile says, else AWS's own for the region."""
    declare: Literal["missing", "never"] = "missing"
    """never: a queue that is not there is refused, not made."""
    max_receive_count: OptionalPositive = 50
    """Of queues that `redrive setup` makes, or finds without a RedrivePolicy: received more often, a message is
    moved to the dead letters by SQS itself. None: it never is. S0: 3.
    """
    visibility: Annotated[Seconds, Field(ge=1, le=43_200)] = 60.0
    """How long a delivery belongs to a worker that no longer says it lives. It says so every third of this."""
    wait: Annotated[Seconds, Field(ge=1, le=20)] = 10.0
    """How long a request waits at SQS for messages: longer ones are fewer, and a worker that stops waits for the
    last one.
    """
    connect_timeout: Timeout = 10.0
    answer_timeout: Timeout = 20.0
    """How long SQS may take to answer, beside `wait`."""
