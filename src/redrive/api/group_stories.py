"""`/groups/{id}/...`: what a group's letters have in common, which attempts failed, what redrives did."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus

from starlette.responses import Response

from redrive.access import Permission
from redrive.api.groups import GroupId
from redrive.api.routes import AtDesk, Routes, answer
from redrive.commonalities import Commonality, Comparison, Relation
from redrive.insights import AttemptCount, GroupAttempts, GroupRedrives, GroupRun

group_stories = Routes("Groups")

_AT = datetime(2026, 5, 17, 12, tzinfo=UTC)


@group_stories.at(
    "GET",
    "/groups/{group_id}/common",
    Permission.READ,
    answers=Comparison,
    also=(HTTPStatus.NOT_FOUND,),
    summary="What its newest letters have in common and others of the queue have not, masked",
    example=Comparison(
        here=200,
        elsewhere=200,
        commonalities=(
            Commonality(
                name="data.country",
                relation=Relation.IS,
                value="PT",
                value_type="string",
                here=194,
                elsewhere=24,
                filter="data.country:PT",
            ),
        ),
    ),
)
async def common(group_id: GroupId, desk: AtDesk) -> Response:
    return answer(await desk.commonalities(group_id))


@group_stories.at(
    "GET",
    "/groups/{group_id}/attempts",
    Permission.READ,
    answers=GroupAttempts,
    also=(HTTPStatus.NOT_FOUND,),
    summary="Which attempts of its newest letters failed",
    example=GroupAttempts(
        letters=200, attempts=(AttemptCount(1, "transient", 200), AttemptCount(2, "transient", 188))
    ),
)
async def attempts(group_id: GroupId, desk: AtDesk) -> Response:
    return answer(await desk.group_attempts(group_id))


@group_stories.at(
    "GET",
    "/groups/{group_id}/redrives",
    Permission.READ,
    answers=GroupRedrives,
    also=(HTTPStatus.NOT_FOUND,),
    summary="What runs did to its newest letters, the last run first",
    example=GroupRedrives(
        letters=1000,
        runs=(
            GroupRun(
                run_id="01890f1c-0000-7000-8000-000000000000",
                by="ann",
                first_at=_AT,
                last_at=_AT,
                outcomes={"came back": 9, "confirmed": 479},
            ),
        ),
    ),
)
async def redrives(group_id: GroupId, desk: AtDesk) -> Response:
    return answer(await desk.group_redrives(group_id))
