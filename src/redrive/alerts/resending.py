"""What was given up, sent once more by a person's wish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive import faults
from redrive.alerts.dispatch import attempt
from redrive.errors import NotDelivered

if TYPE_CHECKING:
    from redrive.alerts.channels import Channel
    from redrive.alerts.outbox import Outbox, Undelivered


async def resend(outbox: Outbox, channel: Channel, each: Undelivered) -> NotDelivered | None:
    """None: it is delivered, and off the list. Else why not, and it stays there. Killed in between, it stays there
    too, and may come a second time under the same id.
    """
    try:
        await attempt(channel, each.alert)
    except NotDelivered as refused:
        await outbox.tried_again(each, str(refused))
        return refused
    faults.point("alerts.delivered")
    await outbox.sent_by_hand(each)
    return None
