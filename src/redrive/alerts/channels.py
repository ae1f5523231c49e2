"""The seam: one way to tell somebody, and which one a URL means.

`https://` is our signed webhook; every other scheme is one of apprise's, which knows Slack, PagerDuty, e-mail,
Teams and a hundred more.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from redrive.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from redrive.alerts.alert import Alert
    from redrive.alerts.texts import Texts
    from redrive.outgoing import Outgoing

EXTRA = "alerts"
_OURS = ("https", "http")


class Channel(Protocol):
    kind: str
    """For people: `webhook`, or the scheme of its URL."""

    async def deliver(self, alert: Alert) -> None:
        """One attempt. The receiver has taken it when this returns; NotDelivered says why it has not, and whether
        trying again can help. Whoever gets an alert a second time can tell by its id, or by its dedup key where
        the receiver knows such keys. Nothing of the URL or of what was answered is in the error.
        """
        ...

    async def check(self) -> None:
        """ConfigurationError if no alert could ever be sent by it, as far as that is known without sending one."""
        ...


def open_channel(url: str, *, secret: str | None, texts: Texts, outgoing: Outgoing) -> Channel:
    """MissingExtra if what the channel needs is not installed."""
    scheme = url.partition(":")[0].lower()
    needed = "httpx2" if scheme in _OURS else "apprise"
    if find_spec(needed) is None:
        raise MissingExtra(scheme if scheme.isalnum() else "a channel's URL", EXTRA)
    if scheme not in _OURS:
        from redrive.alerts.apprise_channel import AppriseChannel  # noqa: PLC0415  only those who use it

        return AppriseChannel(url, texts=texts)
    if secret is None:
        raise ConfigurationError(
            "a webhook needs a secret to sign with",
            remedy="set `secret`; for Slack, Teams and others write the URL as apprise does, such as slack://…",
        )
    from redrive.alerts.webhook import Webhook  # noqa: PLC0415  as above

    return Webhook(url, secret=secret, texts=texts, outgoing=outgoing)
