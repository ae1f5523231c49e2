"""Our own webhook: JSON by POST, signed so that the receiver knows who sent it, when, and that nobody changed it.

The id is the alert's and stays the same when it is sent again; the timestamp is that of the attempt. Nobody is
redirected, and no address inside our network is asked unless the settings allow its host (`outgoing`).
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from redrive.alerts.signing import key_of, signature
from redrive.clock import Clock, SystemClock
from redrive.errors import ConfigurationError, NotDelivered, Refused, Unreachable

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.alerts.alert import Alert
    from redrive.alerts.texts import Texts
    from redrive.outgoing import Outgoing

VERSION = 1
_AGAIN = frozenset({408, 425, 429})
"""Answers that say "later", beside all from 500 on."""


class Webhook:
    kind = "webhook"

    def __init__(
        self, url: str, *, secret: str, texts: Texts, outgoing: Outgoing, clock: Clock | None = None
    ) -> None:
        self._url = url
        self._texts = texts
        self._outgoing = outgoing
        self._clock = clock or SystemClock()
        try:
            self._key = key_of(secret)
        except ValueError as error:
            raise ConfigurationError(f"a webhook's secret {error}") from None

    async def check(self) -> None:
        try:
            self._outgoing.check(self._url)
        except Refused as error:
            raise ConfigurationError(str(error), remedy=error.remedy) from None

    async def deliver(self, alert: Alert) -> None:
        body = msgspec.json.encode(self._told(alert))
        timestamp = int(self._clock.now().timestamp())
        headers = {
            "content-type": "application/json",
            "user-agent": "redrive",
            "webhook-id": alert.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._key, message_id=alert.id, timestamp=timestamp, body=body),
        }
        try:
            answer = await self._outgoing.post(self._url, body, headers=headers)
        except Refused as error:
            raise NotDelivered(str(error), permanent=True, remedy=error.remedy) from None
        except Unreachable as error:
            raise NotDelivered(str(error), permanent=False) from None
        _judge(answer.status, again_in=_seconds(answer.retry_after, self._clock.now()))

    def _told(self, alert: Alert) -> dict[str, Any]:
        return {
            "version": VERSION,
            **msgspec.structs.asdict(alert),
            "title": self._texts.title(alert),
            "environment": self._texts.place,
            "url": self._texts.link(alert),
            "alert_url": self._texts.own_link(alert),
        }


def _seconds(later: str, now: datetime) -> float | None:
    """As HTTP has Retry-After: seconds, or a date. None: neither."""
    if later.isascii() and later.isdecimal():
        return float(later)
    try:
        return (parsedate_to_datetime(later).astimezone(UTC) - now).total_seconds()
    except (ValueError, OverflowError):
        return None


def _judge(status: int, *, again_in: float | None) -> None:
    if 200 <= status < 300:  # noqa: PLR2004  every way to say "taken"
        return
    later = status in _AGAIN or status >= 500  # noqa: PLR2004  the receiver's own failures
    redirected = "; nobody is redirected here" if 300 <= status < 400 else ""  # noqa: PLR2004  as HTTP has it
    raise NotDelivered(
        f"the receiver answered with status {status}{redirected}",
        permanent=not later,
        remedy="" if later else "correct the channel's url or secret, or the receiver",
        again_in=again_in,
    )
