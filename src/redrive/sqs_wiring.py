"""What the settings say about SQS, in the words of its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redrive.settings import Settings

_OPTIONS = ("declare", "visibility", "wait", "connect_timeout", "answer_timeout")


def transport_options(settings: Settings) -> dict[str, Any]:
    sqs = settings.broker.sqs
    told = {name: getattr(sqs, name) for name in _OPTIONS}
    return {**told, "names": settings.broker.names, "endpoint": sqs.endpoint or ""}
