"""`/doctor`: every place where a message may be lost, and what to do about it."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response

from redrive.access import Permission
from redrive.api.routes import AtDesk, Routes, answer
from redrive.examining import Examination

doctor = Routes("Doctor")


@doctor.at(
    "GET",
    "/doctor",
    Permission.ADMINISTER,
    answers=Examination,
    summary="What was found when broker, store, disks and settings were looked at last",
    also=(HTTPStatus.NOT_FOUND,),
)
async def told(desk: AtDesk) -> Response:
    return answer(await desk.examination())


@doctor.at(
    "POST",
    "/doctor",
    Permission.ADMINISTER,
    answers=Examination,
    status=HTTPStatus.ACCEPTED,
    summary="Look again, unless it was done within the last minute. Changes nothing; GET tells what was found",
    reads=True,
)
async def look(desk: AtDesk) -> Response:
    return answer(await desk.examine(), HTTPStatus.ACCEPTED)
