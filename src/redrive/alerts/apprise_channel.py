"""Channels by apprise: each attempt is a process of its own.

apprise calls services with a blocking client that reads whatever is answered, without end. In a process of its own
that costs nobody anything: it has a limit of memory and a deadline, and is killed when it misses either. The URL
goes to it by a pipe, for others can read a process's arguments. What it logs is thrown away: it may quote secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import msgspec

from redrive.alerts.alert import Severity
from redrive.alerts.apprise_wire import Order, Report
from redrive.errors import ConfigurationError, NotDelivered

if TYPE_CHECKING:
    from redrive.alerts.alert import Alert
    from redrive.alerts.texts import Texts

DEADLINE = 25.0
"""Seconds, those that apprise takes to be loaded included."""

_PROGRAM = "redrive.alerts.apprise_process"
_KINDS = {Severity.INFO: "info", Severity.WARNING: "warning"}
_LARGEST_REPORT = 64 * 1024


class AppriseChannel:
    def __init__(self, url: str, *, texts: Texts, deadline: float = DEADLINE) -> None:
        self.kind = url.partition(":")[0].lower()
        self._url = url
        self._texts = texts
        self._deadline = deadline

    async def check(self) -> None:
        report = await self._asked(Order(url=self._url, only_check=True))
        if not report.understood:
            raise ConfigurationError(
                f"apprise does not understand this {self.kind}:// URL",
                remedy="write it as https://github.com/caronc/apprise/wiki has it for that service",
            )

    async def deliver(self, alert: Alert) -> None:
        report = await self._asked(self._order(alert))
        if not report.understood:
            raise NotDelivered(
                f"apprise does not understand this {self.kind}:// URL",
                permanent=True,
                remedy="`redrive alerts channels` checks the URLs of all channels",
            )
        if not report.sent:
            status = "" if report.status is None else f" (status {report.status})"
            raise NotDelivered(f"{self.kind} did not take it{status}", permanent=False)

    def _order(self, alert: Alert) -> Order:
        return Order(
            url=self._url,
            title=self._texts.subject(alert),
            body=self._texts.body(alert),
            kind=_KINDS.get(alert.severity, "failure") if alert.is_raised else "success",
            dedup_key=alert.dedup_key,
            severity=alert.severity.value,
            link=self._texts.link(alert),
            place=self._texts.place,
            rule=alert.rule,
            facts=self._texts.facts(alert),
        )

    async def _asked(self, order: Order) -> Report:
        """What the process reports. NotDelivered if it does not come to that."""
        # -P: a file of the working folder that is called like a package is not taken for it.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", _PROGRAM, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=_LARGEST_REPORT
        )
        try:
            async with asyncio.timeout(self._deadline):
                told, _ = await process.communicate(msgspec.json.encode(order))
        except TimeoutError:
            raise NotDelivered(f"{self.kind} did not answer in {self._deadline:g} s", permanent=False) from None
        finally:
            await _ended(process)
        try:
            return msgspec.json.decode(told, type=Report)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise NotDelivered(f"sending by {self.kind} broke off", permanent=False) from None


async def _ended(process: asyncio.subprocess.Process) -> None:
    """It is gone when this returns, also if whoever waited for it was cancelled."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
