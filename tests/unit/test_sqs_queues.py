from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from redrive.errors import PublishRefused
from redrive.transports.sqs.client import SqsClient
from redrive.transports.sqs.queue_facts import DeadLetterRule
from redrive.transports.sqs.queues import Queues
from redrive.transports.sqs.refusals import SqsRefusal


class Account:
    """As much of a client as knows which queues there are, and takes its time to answer."""

    def __init__(self, *queues: str) -> None:
        self.owner: dict[str, str] = {}
        self.queues = set(queues)
        self.attributes: dict[str, str] = {}
        self.refusals: dict[str, SqsRefusal] = {}
        self.asked: list[str] = []

    async def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append(action)
        await asyncio.sleep(0)
        if action in self.refusals:
            raise self.refusals[action]
        if action == "create_queue":
            self.queues.add(arguments["QueueName"])
            return {}
        name = arguments.get("QueueName") or arguments["QueueUrl"]
        if name not in self.queues:
            raise SqsRefusal("QueueDoesNotExist", "")
        return {"QueueUrl": name} if action == "get_queue_url" else {"Attributes": self.attributes}


def queues_of(account: Account, *, declare: bool = True) -> Queues:
    return Queues(cast("SqsClient", account), declare=declare)


async def test_a_hundred_that_need_a_queue_at_once_ask_for_it_once() -> None:
    account = Account("orders")
    queues = queues_of(account)
    found = await asyncio.gather(*(queues.ensured("orders") for _ in range(100)))
    assert {each.url for each in found} == {"orders"}
    assert account.asked == ["get_queue_url", "get_queue_attributes"]


async def test_a_hundred_that_miss_a_queue_at_once_make_it_once() -> None:
    account = Account()
    queues = queues_of(account)
    await asyncio.gather(*(queues.ensured("orders") for _ in range(100)))
    assert account.asked.count("create_queue") == 1


async def test_who_asks_for_a_queue_that_must_not_be_made_is_told_so_and_finds_it_once_it_is_there() -> None:
    account = Account()
    queues = queues_of(account, declare=False)
    told = await asyncio.gather(*(queues.ensured("orders") for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in told] == [PublishRefused] * 3
    account.queues.add("orders")
    assert (await queues.ensured("orders")).url == "orders"


async def test_one_who_is_given_up_while_he_asks_keeps_nobody_from_asking() -> None:
    account = Account("orders")
    queues = queues_of(account)
    first = asyncio.ensure_future(queues.ensured("orders"))
    second = asyncio.ensure_future(queues.ensured("orders"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).url == "orders"
    with pytest.raises(asyncio.CancelledError):
        await first


RULE = DeadLetterRule("arn:aws:sqs:eu-west-1:1:orders_dlq", 50)


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidParameterValue"])
async def test_a_policy_that_sqs_does_not_set_is_refused_with_the_permission_it_takes(code: str) -> None:
    account = Account("orders")
    account.refusals["set_queue_attributes"] = SqsRefusal(code, "no")
    with pytest.raises(PublishRefused, match="does not change queue 'orders'") as refused:
        await queues_of(account).set_rule("orders", RULE)
    assert "sqs:SetQueueAttributes" in refused.value.remedy


async def test_a_policy_that_somebody_has_set_meanwhile_is_left() -> None:
    account = Account("orders")
    account.attributes = RULE.attributes
    with pytest.raises(PublishRefused, match="meanwhile"):
        await queues_of(account).set_rule("orders", RULE)
    assert "set_queue_attributes" not in account.asked
