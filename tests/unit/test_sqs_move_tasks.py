"""What SQS tells of its move tasks, read as AWS documents it: a task has a handle while it runs, and none
afterwards. The client is a fake that answers so; ElasticMQ, on which the command is tested, always tells the
handle.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from redrive.errors import NotFound, Refused, Unreachable
from redrive.transports.moving import Move, MoveState
from redrive.transports.sqs.address import Address
from redrive.transports.sqs.client import SqsClient
from redrive.transports.sqs.move_tasks import MoveTasks
from redrive.transports.sqs.queues import Queues
from redrive.transports.sqs.refusals import SqsRefusal
from support.sqs_account import CREDENTIALS, REGION

ARN = "arn:aws:sqs:eu-west-1:123456789012:dead"
OLDER = {"Status": "COMPLETED", "StartedTimestamp": 1000, "ApproximateNumberOfMessagesMoved": 7}


class FakeClient:
    """Answers each operation as it is told to."""

    def __init__(self) -> None:
        self.owner: dict[str, str] = {}
        self.tasks: list[dict[str, Any]] = [OLDER]
        self.refusals: dict[str, Exception] = {}
        self.pages = [["http://sqs/1/b"], ["http://sqs/1/a"]]
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        self.asked.append((operation, given))
        if operation in self.refusals:
            raise self.refusals[operation]
        if operation == "list_dead_letter_source_queues":
            urls = self.pages.pop(0)
            return {"queueUrls": urls, **({"NextToken": "more"} if self.pages else {})}
        answers: dict[str, dict[str, Any]] = {
            "get_queue_url": {"QueueUrl": "http://sqs/1/dead"},
            "get_queue_attributes": {"Attributes": {"QueueArn": ARN, "ApproximateNumberOfMessages": "5"}},
            "list_message_move_tasks": {"Results": self.tasks},
            "start_message_move_task": {"TaskHandle": "ours"},
            "cancel_message_move_task": {},
        }
        return answers[operation]


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def tasks(client: FakeClient) -> MoveTasks:
    told = cast("SqsClient", client)
    return MoveTasks(told, Queues(told, declare=False))


def task(status: str, moved: int, *, began: int = 2000, handle: str = "", **more: Any) -> dict[str, Any]:
    named = {"TaskHandle": handle} if handle else {}
    numbers = {"ApproximateNumberOfMessagesMoved": moved, "ApproximateNumberOfMessagesToMove": 5}
    return {"Status": status, "StartedTimestamp": began, **numbers, **named, **more}


async def test_a_task_is_known_again_when_it_is_over_and_has_no_handle_any_more(
    client: FakeClient, tasks: MoveTasks
) -> None:
    move = await tasks.start("dead", rate=50)
    assert (move.state, move.handle) == (MoveState.RUNNING, "ours")
    client.tasks = [task("RUNNING", 2, handle="ours"), OLDER]
    assert (await tasks.look(move)).moved == 2
    client.tasks = [task("COMPLETED", 9, began=3000), task("FAILED", 3, FailureReason="WhoKnows"), OLDER]

    ended = await tasks.look(move)

    assert (ended.state, ended.moved, ended.total, ended.why) == (MoveState.FAILED, 3, 5, "WhoKnows")


async def test_a_task_that_is_not_told_of_yet_runs_and_one_that_is_not_any_more_was_cancelled(
    client: FakeClient, tasks: MoveTasks
) -> None:
    move = await tasks.start("dead", rate=None)
    assert (await tasks.look(move)).state is MoveState.RUNNING
    client.tasks = [task("RUNNING", 2, handle="ours"), OLDER]
    seen = await tasks.look(move)
    client.tasks = [task("RUNNING", 0, began=3000, handle="somebody's"), OLDER]

    assert (await tasks.look(seen)).state is MoveState.CANCELLED


async def test_every_page_of_source_queues_is_asked_for_and_a_task_under_way_is_told(
    client: FakeClient, tasks: MoveTasks
) -> None:
    client.tasks = [task("RUNNING", 1, handle="somebody's"), OLDER]

    found = await tasks.movable("dead")

    assert (found.targets, found.ready) == (("a", "b"), 5)
    assert found.under_way is not None
    assert (found.under_way.handle, found.under_way.moved) == ("somebody's", 1)


async def test_a_rate_is_asked_for_only_if_there_is_one(client: FakeClient, tasks: MoveTasks) -> None:
    for rate in (None, 50):
        await tasks.start("dead", rate=rate)

    started = [given for operation, given in client.asked if operation == "start_message_move_task"]
    assert started == [{"SourceArn": ARN}, {"SourceArn": ARN, "MaxNumberOfMessagesPerSecond": 50}]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("UnsupportedOperation", Refused),
        ("InvalidParameterValue", Refused),
        ("AccessDenied", Unreachable),
        ("Throttling", Unreachable),
    ],
)
async def test_a_task_that_sqs_will_not_start_is_refused_or_cannot_be_started_now(
    code: str, error: type[Exception], client: FakeClient, tasks: MoveTasks
) -> None:
    client.refusals["start_message_move_task"] = SqsRefusal(code, "no")

    with pytest.raises(error):
        await tasks.start("dead", rate=None)


async def test_cancelling_what_is_over_is_no_error(client: FakeClient, tasks: MoveTasks) -> None:
    client.refusals["cancel_message_move_task"] = SqsRefusal("ResourceNotFoundException", "none is running")

    await tasks.cancel(Move(queue="dead", handle="ours"))


async def test_a_queue_that_is_not_there_is_not_found(client: FakeClient, tasks: MoveTasks) -> None:
    client.refusals["get_queue_url"] = SqsRefusal("QueueDoesNotExist", "")

    with pytest.raises(NotFound):
        await tasks.movable("dead")


async def test_a_task_that_has_begun_is_told_whatever_fails_afterwards(
    client: FakeClient, tasks: MoveTasks
) -> None:
    answer = client.call

    async def falls_silent(operation: str, **given: Any) -> dict[str, Any]:
        if any(asked == "start_message_move_task" for asked, _ in client.asked):
            raise Unreachable("gone")
        return await answer(operation, **given)

    client.call = falls_silent  # type: ignore[method-assign]  # a fake's

    move = await tasks.start("dead", rate=None)

    assert (move.handle, move.after, move.state) == ("ours", 1000, MoveState.RUNNING)


async def test_a_start_that_is_not_answered_may_have_begun(client: FakeClient, tasks: MoveTasks) -> None:
    client.refusals["start_message_move_task"] = Unreachable("SQS does not answer")

    with pytest.raises(Unreachable, match="nobody knows whether") as unanswered:
        await tasks.start("dead", rate=None)

    assert "--cancel" in unanswered.value.remedy


async def test_a_start_that_is_not_answered_is_not_repeated_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one would be refused as if the first were somebody else's."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    asked = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = SqsClient(Address(REGION), endpoint=endpoint, connect_timeout=5, patience=5)
        with pytest.raises(Unreachable):
            await client.call("start_message_move_task", SourceArn=ARN)
        await client.close()

    assert asked == 1
