"""`/groups`: failures by cause, and what people say about them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import Path, Query
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from redrive.access import Permission
from redrive.api.cursors import group_cursor, group_place_of
from redrive.api.routes import AtDesk, Routes, answer, taken
from redrive.dead_letter import FailureGroup, Verdict
from redrive.insights import GroupOrder, GroupPlace, GroupQuery
from redrive.letter_query import MAX_PAGE

groups = Routes("Groups")

GroupId = Annotated[str, Path(description="The group's id, or a beginning that only it has.", max_length=64)]


class GroupPage(msgspec.Struct):
    items: list[FailureGroup]
    next: str | None = None
    """The cursor of the next page: `after=`. null: this was the last one."""


class GroupNotes(msgspec.Struct, kw_only=True):
    """What is not given stays; null takes it away."""

    owner: str | UnsetType | None = UNSET
    verdict: Verdict | UnsetType | None = UNSET
    note: str | UnsetType | None = UNSET
    runbook: str | UnsetType | None = UNSET
    reason: str = ""


class Merge(msgspec.Struct):
    """Groups that are this one from now on, and why."""

    others: list[str]
    reason: str


class Split(msgspec.Struct):
    """What was merged into the group under this id is a group of its own again."""

    fingerprint: str
    reason: str


@groups.at("GET", "/groups", Permission.READ, answers=GroupPage, summary="List failures by cause")
async def list_groups(
    desk: AtDesk,
    queue: Annotated[str | None, Query(max_length=1000)] = None,
    owner: Annotated[str | None, Query(max_length=200)] = None,
    verdict: Annotated[Verdict | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
    text: Annotated[str | None, Query(max_length=200, description="Stands in the title.")] = None,
    sort: Annotated[GroupOrder, Query(description="The most first, or the latest.")] = GroupOrder.PENDING,
    after: Annotated[str | None, Query(max_length=300, description="`next` of the page before.")] = None,
) -> Response:
    place = None if after is None else group_place_of(after)
    query = GroupQuery(
        queue=queue, owner=owner, verdict=verdict, text=text or None, order=sort, after=place, limit=limit
    )
    found = await desk.group_page(query)
    following = group_cursor(GroupPlace.of(found[-1], sort)) if len(found) == limit else None
    return answer(GroupPage(found, following))


@groups.at(
    "GET",
    "/groups/{group_id}",
    Permission.READ,
    answers=FailureGroup,
    also=(HTTPStatus.NOT_FOUND,),
    summary="One group with its numbers and its history",
)
async def show(group_id: GroupId, desk: AtDesk) -> Response:
    return answer(await desk.group(group_id))


@groups.at(
    "PATCH",
    "/groups/{group_id}",
    Permission.ANNOTATE,
    takes=GroupNotes,
    answers=FailureGroup,
    summary="Say who owns a group, what to do with it, a note, a runbook's link",
)
async def annotate(group_id: GroupId, desk: AtDesk, said: Annotated[GroupNotes, taken(GroupNotes)]) -> Response:
    return answer(
        await desk.annotate(
            group_id,
            owner=said.owner,
            verdict=said.verdict,
            note=said.note,
            runbook=said.runbook,
            reason=said.reason,
        )
    )


@groups.at(
    "POST",
    "/groups/{group_id}/merge",
    Permission.ANNOTATE,
    takes=Merge,
    answers=FailureGroup,
    summary="Make other groups part of this one",
)
async def merge(group_id: GroupId, desk: AtDesk, asked: Annotated[Merge, taken(Merge)]) -> Response:
    return answer(await desk.merge(group_id, asked.others, asked.reason))


@groups.at(
    "POST",
    "/groups/{group_id}/split",
    Permission.ANNOTATE,
    takes=Split,
    answers=FailureGroup,
    summary="Make what was merged a group of its own again",
)
async def split(group_id: GroupId, desk: AtDesk, asked: Annotated[Split, taken(Split)]) -> Response:
    return answer(await desk.split(group_id, asked.fingerprint, asked.reason))
