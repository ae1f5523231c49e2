"""How an alert reads: a subject, a body, and the links to the console.

Titles are masked, and still made by whoever sent the message that failed. So they are one line without control
characters, and cut: nobody writes a second header into a mail or hides the rest of a line.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from redrive.duration import short

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.alerts.alert import Alert

_LONGEST_TITLE = 200
_LONGEST_NAME = 100


class Texts:
    """`public_url` is where people reach the console; None: texts have no link. `place` names the installation,
    such as `production`; empty: texts do not say it.
    """

    def __init__(self, *, public_url: str | None = None, place: str = "") -> None:
        self._public_url = None if public_url is None else public_url.rstrip("/")
        self.place = one_line(place, _LONGEST_NAME)

    def subject(self, alert: Alert) -> str:
        marked = alert.severity.value if alert.is_raised else f"{alert.state.value}, was {alert.severity.value}"
        place = f" ({self.place})" if self.place else ""
        return f"[{marked}] {self.title(alert)}{place}"

    def title(self, alert: Alert) -> str:
        return one_line(alert.title, _LONGEST_TITLE)

    def link(self, alert: Alert) -> str | None:
        """To what it is about."""
        return None if self._public_url is None else self._public_url + alert.path

    def own_link(self, alert: Alert) -> str | None:
        """To where it is acknowledged."""
        return None if self._public_url is None or not alert.own_path else self._public_url + alert.own_path

    def facts(self, alert: Alert) -> dict[str, str]:
        """Names and values, for channels that show them apart."""
        counted = {one_line(name, _LONGEST_NAME): f"{number:,}" for name, number in alert.counts.items()}
        named = {
            "queue": one_line(alert.queue, _LONGEST_NAME),
            "rule": one_line(alert.rule, _LONGEST_NAME),
            "alert": alert.incident_id,
        }
        over = {} if alert.is_raised else {"over after": short((alert.at - alert.since).total_seconds())}
        about = {**named, "environment": self.place, "since": _moment(alert.since), **over}
        return {**counted, **{name: value for name, value in about.items() if value}}

    def body(self, alert: Alert) -> str:
        lines = [self.title(alert), "", *(f"{name}: {value}" for name, value in self.facts(alert).items())]
        link, own = self.link(alert), self.own_link(alert)
        if own is not None and alert.is_raised:
            lines += ["", f"To acknowledge or snooze it: {own}"]
        return "\n".join(lines if link is None else [*lines, "", link])


def one_line(text: str, longest: int) -> str:
    plain = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
