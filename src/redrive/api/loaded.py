"""`/settings`: what the server works by, and what roles there are."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from redrive.access import PERMISSIONS, Permission, Role
from redrive.api.routes import AtDesk, Routes, answer
from redrive.loaded import Loaded

loaded = Routes("Settings")


class SettingsJson(msgspec.Struct, kw_only=True):
    roles: dict[Role, list[Permission]]
    """What each role there is allows. `GET /session` tells which ones whoever asks has."""
    loaded: Loaded


@loaded.at(
    "GET",
    "/settings",
    Permission.READ,
    answers=SettingsJson,
    summary="Retention, rules and approvals as they were loaded, and every role; nothing secret",
    example=SettingsJson(roles={Role.VIEWER: [Permission.READ]}, loaded=Loaded()),
)
async def settings(desk: AtDesk) -> Response:
    roles = {role: sorted(allowed) for role, allowed in PERMISSIONS.items()}
    return answer(SettingsJson(roles=roles, loaded=await desk.loaded()))
