"""SQS's own move tasks: everything in a dead-letter queue goes back to where it came from.

A task has a handle while it runs, and none afterwards: it is known by when it began. A server may forget it when
it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from redrive.errors import NotFound, Refused, Unreachable
from redrive.transports.moving import Movable, Move, MoveState
from redrive.transports.sqs.refusals import SqsRefusal, unusable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from redrive.transports.sqs.client import SqsClient
    from redrive.transports.sqs.queue_facts import QueueFacts
    from redrive.transports.sqs.queues import Queues

_FASTEST = 500
_MOST = 10
"""Tasks of a queue that SQS tells of."""
_PAGE = 1000
_OVER = frozenset({"ResourceNotFoundException", "UnsupportedOperation"})


class _Told(NamedTuple):
    """What SQS says of a task."""

    began: int
    handle: str
    state: MoveState
    moved: int
    total: int
    why: str


class MoveTasks:
    fastest = _FASTEST

    def __init__(self, client: SqsClient, queues: Queues) -> None:
        self._client = client
        self._queues = queues

    async def movable(self, queue: str) -> Movable:
        found = await self._facts(queue)
        told = await self._told(found)
        latest = Move(queue=queue, after=told[-2].began if len(told) > 1 else 0)
        last = _as_told(latest, told)
        return Movable(
            queue=queue,
            ready=found.count(""),
            in_other_hands=found.count("NotVisible"),
            targets=tuple(sorted(await self._sources(found))),
            under_way=None if last is None or last.state.is_over else last,
        )

    async def start(self, queue: str, *, rate: int | None) -> Move:
        found = await self._facts(queue)
        before = max((each.began for each in await self._told(found)), default=0)
        paced = {} if rate is None else {"MaxNumberOfMessagesPerSecond": rate}
        try:
            told = await self._client.call("start_message_move_task", SourceArn=found.arn, **paced)
        except SqsRefusal as refusal:
            raise _refused(refusal, queue) from None
        except Unreachable as unanswered:
            raise Unreachable(
                f"nobody knows whether SQS has begun to move {queue!r} back: {unanswered}",
                remedy=f"redrive move-back {queue} --dry-run says if a move is under way, --cancel ends it",
            ) from None
        # It runs from here on, whatever else fails.
        return Move(queue=queue, after=before, handle=str(told["TaskHandle"]))

    async def look(self, move: Move) -> Move:
        told = await self._told(await self._facts(move.queue))
        return _as_told(move, told) or _not_told(move)

    async def cancel(self, move: Move) -> None:
        try:
            await self._client.call("cancel_message_move_task", TaskHandle=move.handle)
        except SqsRefusal as refusal:
            if refusal.code not in _OVER:
                raise unusable(refusal) from None

    async def _facts(self, queue: str) -> QueueFacts:
        found = await self._queues.facts(queue)
        if found is None:
            raise NotFound(f"there is no queue {queue!r}", remedy="`redrive queues` lists those of the settings")
        return found

    async def _told(self, queue: QueueFacts) -> list[_Told]:
        """The latest last."""
        answer = await self._asked("list_message_move_tasks", SourceArn=queue.arn, MaxResults=_MOST)
        return sorted((_read(each) for each in answer.get("Results", ())), key=lambda each: each.began)

    async def _sources(self, queue: QueueFacts) -> list[str]:
        names: list[str] = []
        page: dict[str, Any] = {"MaxResults": _PAGE}
        while True:
            told = await self._asked("list_dead_letter_source_queues", QueueUrl=queue.url, **page)
            names += [str(url).rpartition("/")[2] for url in told.get("queueUrls", ())]
            if not told.get("NextToken"):
                return names
            page["NextToken"] = told["NextToken"]

    async def _asked(self, operation: str, **given: Any) -> dict[str, Any]:
        try:
            return await self._client.call(operation, **given)
        except SqsRefusal as refusal:
            raise unusable(refusal) from None


def _as_told(move: Move, told: Iterable[_Told]) -> Move | None:
    """As it is now; None: it is not told of."""
    for each in told:
        if each.began > move.after and (not move.handle or each.handle in {"", move.handle}):
            return replace(
                move,
                seen=True,
                handle=each.handle or move.handle,
                state=each.state,
                moved=each.moved,
                total=max(each.total, move.total or 0, each.moved),
                why=each.why,
            )
    return None


def _not_told(move: Move) -> Move:
    """Not yet, or not any more: what runs is always told of."""
    gone = move.seen or move.state is MoveState.CANCELLING
    return replace(move, state=MoveState.CANCELLED) if gone else move


def _read(told: dict[str, Any]) -> _Told:
    return _Told(
        began=int(told.get("StartedTimestamp", 0)),
        handle=str(told.get("TaskHandle", "")),
        state=MoveState(told["Status"]),
        moved=int(told.get("ApproximateNumberOfMessagesMoved", 0)),
        total=int(told.get("ApproximateNumberOfMessagesToMove", 0)),
        why=str(told.get("FailureReason", "")),
    )


def _refused(refusal: SqsRefusal, queue: str) -> Exception:
    if refusal.code == "UnsupportedOperation":
        return Refused(f"SQS does not move {queue!r} back: {refusal}", remedy="see whether somebody else does so")
    if refusal.code in {"InvalidParameterValue", "ResourceNotFoundException"}:
        return Refused(
            f"SQS does not move {queue!r} back: {refusal}", remedy=f"redrive collect {queue}, and redrive retry"
        )
    return unusable(refusal)
