"""`/about`: what a page has to know about the server before it shows anything."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from redrive import __version__
from redrive.api.routes import answer, documented
from redrive.environment_actions import is_production

about = APIRouter(tags=["About"])


class Features(msgspec.Struct, kw_only=True):
    oidc: bool
    """An identity provider can be asked who somebody is."""
    local_users: bool
    """Users with a name and a password can sign in."""


class About(msgspec.Struct, kw_only=True):
    version: str
    environment: str
    """Which one the store belongs to; empty: nobody has said."""
    production: bool
    """The environment is called as production is, so that people should be warned."""
    read_only: bool
    features: Features


@about.get("/about", **documented("What this server is, for whoever is signed in", answers=About, known=True))
async def tell(request: Request) -> Response:
    door, reception = request.app.state.door, request.app.state.reception
    desk = await door.desk(request)
    with door.counted(desk.who):
        environment = await desk.environment()
    return answer(
        About(
            version=__version__,
            environment=environment,
            production=is_production(environment),
            read_only=door.read_only,
            features=Features(oidc=reception.provider is not None, local_users=True),
        )
    )
