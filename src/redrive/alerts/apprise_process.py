"""The process that sends one alert by apprise: an `Order` on stdin, a `Report` on stdout. See `apprise_channel`.

PagerDuty knows what an incident is: there, everything with one dedup key is one incident, and the end resolves it.
apprise has that key as a part of the URL, so each alert gets an address of its own. Any other service gets a
message at the beginning and one at the end.
"""

from __future__ import annotations

import logging
import resource
import sys
from typing import Any

import msgspec
import re2
from apprise import Apprise, AppriseAsset, NotifyFormat
from apprise.plugins import url_to_dict

from redrive.alerts.apprise_wire import Order, Report

_MEMORY = 512 * 2**20
_STATUS = re2.compile(r"error=([1-5][0-9]{2})\b")


class _Refusal(logging.Handler):
    """Of what apprise logs, the last status that a service refused with; all else may be secret."""

    status: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        found = _STATUS.search(record.getMessage())
        if found is not None:
            self.status = int(found[1])


def report_on(order: Order) -> Report:
    asset = AppriseAsset(
        app_id="Redrive", app_desc="Redrive alerts", app_url="", image_url_mask="", image_url_logo="",
        http_redirects=False, async_mode=False, storage_mode="memory",
    )  # fmt: skip
    heard = _listening()
    parts: dict[str, Any] | None = url_to_dict(order.url)  # type: ignore[no-untyped-call]  # it has no types
    service = None if parts is None else Apprise.instantiate({**parts, **_own(order, parts)}, asset=asset)
    if parts is None or service is None:
        return Report(understood=False)
    if order.only_check:
        return Report(understood=True)
    sending = Apprise(asset=asset)
    sending.add(service)
    title, body = _texts(order, parts)
    sent = bool(sending.notify(body=body, title=title, notify_type=order.kind, body_format=NotifyFormat.TEXT))
    return Report(understood=True, sent=sent, status=None if sent else heard.status)


def _own(order: Order, parts: dict[str, Any]) -> dict[str, Any]:
    """What the service is told in its own words, beside what the URL says."""
    if order.only_check or parts["schema"] != "pagerduty":
        return {}
    usual = {"source": order.place or "redrive", "component": "dead-letters", "class_id": order.rule}
    given = {name: parts.get(name) or value for name, value in usual.items()}
    own = {"dedup": order.dedup_key, "action": "map", "severity": order.severity, "click": order.link}
    return {**given, **own, "details": {**order.facts, **(parts.get("details") or {})}}


def _texts(order: Order, parts: dict[str, Any]) -> tuple[str, str]:
    """Title and body. PagerDuty has a summary alone: the facts are beside it."""
    return ("", order.title) if parts["schema"] == "pagerduty" else (order.title, order.body)


def _listening() -> _Refusal:
    heard = _Refusal()
    log = logging.getLogger("apprise")
    log.handlers = [heard]
    log.propagate = False
    log.setLevel(logging.WARNING)
    return heard


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    sys.stdout.buffer.write(msgspec.json.encode(report_on(order)))


if __name__ == "__main__":
    main()
