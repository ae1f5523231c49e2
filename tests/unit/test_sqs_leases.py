"""The heartbeat that keeps what is held of SQS, and what it does when SQS does not answer or says no."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from redrive.errors import LeaseLost, Unreachable
from redrive.transports import LostLeases
from redrive.transports.sqs.client import SqsClient
from redrive.transports.sqs.leases import Lease, Leases
from redrive.transports.sqs.queue_facts import QueueFacts
from redrive.transports.sqs.reading import Arrived
from redrive.transports.sqs.refusals import SqsRefusal
from redrive.transports.sqs.requests import Requests
from support.patience import until

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
DENIED = SqsRefusal("AccessDenied", "not authorized to perform: sqs:changemessagevisibility")


def a_lease(queue: str, number: int = 1, *, until: float = 60.0) -> Lease:
    facts = QueueFacts(queue, f"http://sqs/1/{queue}", {})
    came = Arrived(queue, f"arn:{queue}", f"m-{number}", "{}", {}, {}, NOW)
    return Lease(queue=facts, arrived=came, handle=f"r-{number}", since=0.0, until=until)


class Sqs:
    """Renews leases; those of a queue in `answers` as it says there, None: never."""

    def __init__(self, **answers: SqsRefusal | None) -> None:
        self.answers = answers
        self.renewed: Counter[str] = Counter()
        self.now = 0.0
        self.lost = LostLeases()

    async def hide(self, lease: Lease, _seconds: int) -> None:
        queue = lease.queue.name
        if queue in self.answers:
            answer = self.answers[queue]
            if answer is not None:
                raise answer
            await asyncio.Event().wait()
        self.renewed[queue] += 1

    def leases(self, span: float = 60) -> Leases:
        return Leases(cast("int", span), now=lambda: self.now, hide=self.hide, lost=self.lost)


async def test_a_renewal_that_is_not_answered_costs_no_other_queue_its_leases() -> None:
    sqs = Sqs(slow=None)
    leases = sqs.leases(span=0.003)
    for queue in ("slow", "orders"):
        leases.take(a_lease(queue))

    await until(lambda: sqs.renewed["orders"] >= 3)

    await leases.stop()
    assert sqs.renewed["slow"] == 0


async def test_a_refusal_to_renew_is_told_once_for_each_queue_with_its_remedy() -> None:
    sqs = Sqs(orders=DENIED, refunds=DENIED)
    leases = sqs.leases()
    for number, queue in enumerate(("orders", "orders", "refunds")):
        leases.take(a_lease(queue, number))

    with capture_logs() as logged:
        for _ in range(3):
            await leases.renew()
        del sqs.answers["orders"]
        await leases.renew()
        sqs.answers["orders"] = DENIED
        await leases.renew()

    await leases.stop()
    assert sorted(each["queue"] for each in logged) == ["orders", "orders", "refunds"]
    assert "sqs:changemessagevisibility" in logged[0]["error"]
    assert logged[0]["remedy"]


@pytest.mark.parametrize("queue", ["orders", "orders.fifo"])
async def test_a_change_of_visibility_that_is_not_answered_is_given_up_for_the_next(queue: str) -> None:
    class Client:
        asked = 0

        async def call(self, _operation: str, *, Entries: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803  SQS's own
            self.asked += 1
            if self.asked == 1:
                await asyncio.Event().wait()
            return {"Successful": [{"Id": each["Id"]} for each in Entries]}

    requests = Requests(cast("SqsClient", Client()), patience=0.01)
    facts = QueueFacts(queue, f"http://sqs/1/{queue}", {})

    with pytest.raises(Unreachable, match="too long"):
        await requests.hide(facts, "r-1", 60)
    await requests.hide(facts, "r-1", 60)


class InHand:
    """Who handles a message."""

    def settled(self) -> None: ...


def told_of(sqs: Sqs) -> list[object]:
    told: list[object] = []
    sqs.lost.listen(told.append)
    return told


async def test_whoever_handles_a_message_is_told_once_that_sqs_does_not_renew_its_lease() -> None:
    sqs = Sqs(orders=SqsRefusal("ReceiptHandleIsInvalid", ""))
    leases, told = sqs.leases(), told_of(sqs)
    handled, on_the_shelf = a_lease("orders", 1), a_lease("orders", 2)
    handled.holder = InHand()
    for each in (handled, on_the_shelf):
        leases.take(each)

    for _ in range(2):
        await leases.renew()

    await leases.stop()
    assert told == [handled]
    with pytest.raises(LeaseLost):
        leases.claim(handled)


async def test_whoever_handles_a_message_whose_lease_ran_out_is_told_and_who_settles_it_is_not() -> None:
    sqs = Sqs()
    leases, told = sqs.leases(), told_of(sqs)
    handled, settled = a_lease("orders", 1), a_lease("orders", 2)
    for each in (handled, settled):
        each.holder = InHand()
        leases.take(each)
    leases.claim(settled)
    sqs.now = 61.0

    for _ in range(2):
        await leases.renew()

    await leases.stop()
    assert told == [handled]
