"""The application: every route, what surrounds them, and the OpenAPI that is made of them."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from redrive import __version__
from redrive.api.about import about
from redrive.api.accounts import accounts
from redrive.api.alerts import alerts
from redrive.api.audit import audit
from redrive.api.console import BUILT, console, is_page
from redrive.api.console import page as console_page
from redrive.api.docs import docs
from redrive.api.doctor import doctor
from redrive.api.exports import exports
from redrive.api.filters import filters
from redrive.api.group_stories import group_stories
from redrive.api.groups import groups
from redrive.api.guards import Guards
from redrive.api.health import health
from redrive.api.intake import intake
from redrive.api.letter_parts import letter_parts
from redrive.api.letters import letters
from redrive.api.loaded import loaded
from redrive.api.metrics import metrics
from redrive.api.overview import overview
from redrive.api.problems import Unprocessable, answer_to, problem
from redrive.api.queues import queues
from redrive.api.routes import components
from redrive.api.run_plans import run_plans
from redrive.api.runs import runs
from redrive.api.s1 import s1
from redrive.api.sign_in import sign_in
from redrive.api.stats import stats
from redrive.errors import RedriveError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from redrive.api.door import Door
    from redrive.api.health import Check
    from redrive.api.metrics import Told
    from redrive.api.sign_in import Reception

PREFIX = "/api/v1"
_ZIPPED_FROM = 1024
_NOUNS = (
    *(overview, letters, letter_parts, exports, filters, groups, group_stories, runs, run_plans, stats, alerts),
    *(queues, audit, accounts, intake, loaded, doctor, sign_in, about, s1),
)


def create_app(
    door: Door,
    *,
    reception: Reception,
    checks: Mapping[str, Check],
    told: Told,
    request_timeout: float = 10.0,
    console_folder: Path = BUILT,
) -> FastAPI:
    """`checks` are the parts that health is asked of; `store` has to be one of them. `told` are the metrics."""
    app = FastAPI(
        title="Redrive",
        version=__version__,
        summary="Dead letters: look at them, understand them, put them back.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.door = door
    app.state.checks = checks
    app.state.metrics = told
    app.state.reception = reception
    app.state.console = console_folder
    for noun in _NOUNS:
        app.include_router(noun, prefix=PREFIX)
    app.include_router(health)
    app.include_router(metrics)
    app.include_router(docs)
    app.include_router(console)
    app.add_exception_handler(RedriveError, _answered)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _answered)
    app.add_middleware(GZipMiddleware, minimum_size=_ZIPPED_FROM)
    app.add_middleware(Guards, within=request_timeout)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # how FastAPI is told
    return app


async def _answered(request: Request, error: Exception) -> Response:
    return answer_to(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  it is handled for nothing else
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return answer_to(request, Unprocessable(f"{name}: {first['msg']}", remedy="see /docs"))


async def _plain(request: Request, error: Exception) -> Response:
    """What the framework refuses itself: an unknown path, a method that is none."""
    assert isinstance(error, HTTPException)  # noqa: S101  it is handled for nothing else
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND and is_page(request.scope, request.headers.get("accept", "")):
        return await run_in_threadpool(console_page, request)
    headers = {name.lower(): text for name, text in (error.headers or {}).items()}
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(_allowed(request))
    request_id = request.scope.get("redrive.request_id", "")
    return problem(
        status, status.description or status.phrase, remedy="see /docs", request_id=request_id, headers=headers
    )


def _allowed(request: Request) -> list[str]:
    """The methods of the path; the framework itself tells those of the first route that is there."""
    here = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    paths = request.app.openapi()["paths"]
    found = next((path for path in (here, *paths) if path in paths and _leads_to(path, here)), "")
    return sorted(method.upper() for method in paths.get(found, ()))


def _leads_to(path: str, here: str) -> bool:
    parts, given = path.split("/"), here.split("/")
    return len(parts) == len(given) and all(a == b or a[:1] == "{" for a, b in zip(parts, given, strict=True))


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, openapi_version="3.1.0"
        )
        schemas = made.setdefault("components", {})
        schemas["schemas"] = {**schemas.get("schemas", {}), **components()}
        schemas["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": "rdv_..."}}
        made["security"] = [{"token": []}]
        app.openapi_schema = made
    return app.openapi_schema
