"""`/queues`: what the broker tells of its queues, and how many letters each has."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Query
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.routes import AtDesk, Routes, answer
from redrive.letter_query import MAX_PAGE
from redrive.queue_actions import QueueOverview

queues = Routes("Queues")


class QueueList(msgspec.Struct, kw_only=True):
    items: list[QueueOverview]
    incomplete: str
    """Why these may not be all queues, or not all there is to tell about them."""


@queues.at("GET", "/queues", Permission.READ, answers=QueueList, summary="Depth, retries, dead letters, consumers")
async def list_queues(
    desk: AtDesk,
    queue: Annotated[
        tuple[str, ...], Query(max_length=MAX_PAGE, description="Only this one and its own; repeatable.")
    ] = (),
) -> Response:
    found, incomplete = await desk.queues(queue)
    return answer(QueueList(items=found, incomplete=incomplete))
