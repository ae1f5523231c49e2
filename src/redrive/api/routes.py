"""How a route is declared: what it needs, what it takes and what it answers, all of it in OpenAPI.

Answers and bodies are msgspec structs: their JSON is the documented one because the schema is made of the same
struct. A route without a permission cannot be declared.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from fastapi import APIRouter, Depends, Header, Request
from starlette.responses import Response

from redrive.access import Permission
from redrive.actions import Actions
from redrive.any_text_json import encoded
from redrive.api.problems import MEDIA_TYPE, Problem, TooLarge, Unprocessable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from redrive.api.door import Door

T = TypeVar("T")

REF = "#/components/schemas/{name}"
_PROBLEMS = {
    HTTPStatus.BAD_REQUEST: "The request cannot be understood.",
    HTTPStatus.UNAUTHORIZED: "No valid token or session.",
    HTTPStatus.FORBIDDEN: "Whoever asks lacks the permission.",
    HTTPStatus.NOT_FOUND: "Nothing under that id, or in queues of somebody else's.",
    HTTPStatus.CONFLICT: "Not allowed in its current state; nothing was changed.",
    HTTPStatus.PRECONDITION_FAILED: "Somebody else has edited it meanwhile.",
    HTTPStatus.PRECONDITION_REQUIRED: "If-Match is missing.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A parameter or the body is not what the route takes.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests; Retry-After tells when.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Store or broker cannot be reached; Retry-After tells when to try again.",
}
_ALWAYS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_CHANGES = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

DOCUMENTED: set[type] = {Problem}
"""Every struct that OpenAPI names."""


class Routes(APIRouter):
    """The routes of one noun."""

    def __init__(self, noun: str) -> None:
        super().__init__(tags=[noun])
        self._noun = noun.lower()

    def at(
        self,
        method: str,
        path: str,
        permission: Permission,
        *,
        summary: str,
        answers: Any = None,
        takes: Any = None,
        status: HTTPStatus = HTTPStatus.OK,
        media_type: str = "application/json",
        also: tuple[HTTPStatus, ...] = (),
        example: Any = None,
        reads: bool = False,
    ) -> Callable[[Callable[..., Awaitable[Response]]], Callable[..., Awaitable[Response]]]:
        """`answers` and `takes` are msgspec structs, or lists of such; `also` are problems that not all have.
        `reads`: it changes nothing although it is no GET, so that what it is asked does not stand in a URL.
        """
        expected = (*_ALWAYS, *also, *(_CHANGES if method != "GET" else ()))
        extra: dict[str, Any] = {"x-permission": str(permission)}
        if takes is not None:
            extra["requestBody"] = _body(takes)
        responses = problems(*expected)
        responses[status.value] = _answer(status, answers, media_type, example)

        def declare(endpoint: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
            self.add_api_route(
                path,
                endpoint,
                methods=[method],
                summary=summary,
                status_code=status.value,
                response_class=Response,
                response_model=None,
                responses=responses,
                dependencies=[Depends(_requires(permission, changes=method != "GET" and not reads))],
                openapi_extra=extra,
                operation_id=f"{self._noun}_{endpoint.__name__}",
            )
            return endpoint

        return declare


def documented(
    summary: str, *, takes: Any = None, answers: Any = None, status: int = 200, known: bool = False
) -> dict[str, Any]:
    """For a route that anybody may ask, of whoever signs in: what a decorator of FastAPI takes. `known`: anybody
    who is signed in, whatever they may do.
    """
    found = HTTPStatus(status)
    extra: dict[str, Any] = {} if known else {"security": []}
    if takes is not None:
        extra["requestBody"] = _body(takes)
    return {
        "summary": summary,
        "status_code": status,
        "response_class": Response,
        "response_model": None,
        "responses": {**problems(*_ALWAYS, *_CHANGES), status: _answer(found, answers, "application/json", None)},
        "openapi_extra": extra,
    }


def problems(*expected: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    return {each.value: _problem(each) for each in expected}


def _body(takes: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": _schema(takes)}}
    return {"required": bool(_needed(takes)), "content": content}


def _needed(takes: type[msgspec.Struct]) -> list[str]:
    return [each.name for each in msgspec.structs.fields(takes) if each.required]


def _answer(status: HTTPStatus, answers: Any, media_type: str, example: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"description": status.phrase}
    if answers is None:
        if media_type != "application/json":
            described["content"] = {media_type: {}}
        return described
    content: dict[str, Any] = {"schema": _schema(answers)}
    if example is not None:
        content["example"] = msgspec.to_builtins(example)
    return described | {"content": {media_type: content}}


def _problem(status: HTTPStatus) -> dict[str, Any]:
    return {"description": _PROBLEMS[status], "content": {MEDIA_TYPE: {"schema": _schema(Problem)}}}


def _schema(kind: Any) -> dict[str, Any]:
    """A reference to the struct's schema, or to that of the structs in a list."""
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema(*get_args(kind))}
    DOCUMENTED.add(kind)
    return {"$ref": REF.format(name=kind.__name__)}


def components() -> Mapping[str, Any]:
    """The schemas of everything documented, and of what those hold."""
    _, found = msgspec.json.schema_components(sorted(DOCUMENTED, key=lambda each: each.__name__), ref_template=REF)
    return {name: _readable(each) for name, each in found.items()}


def _readable(schema: Any) -> Any:
    """Generators of clients know no lists that have a type for each place: any of those types stands at each."""
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _readable(each) for name, each in schema.items() if name != "prefixItems"}
    if "prefixItems" in schema:
        plain["items"] = {"anyOf": _readable(schema["prefixItems"])}
    elif schema.get("type") == "array":
        plain.setdefault("items", {})
    return plain


async def _desk(request: Request) -> Actions:
    """The desk of whoever sends this request. Made once for it."""
    found: Actions | None = request.scope.get("redrive.desk")
    if found is None:
        door: Door = request.app.state.door
        found = request.scope["redrive.desk"] = await door.desk(request)
    return found


def _requires(permission: Permission, *, changes: bool) -> Callable[[Request], AsyncIterator[None]]:
    """The permission that the route declares is the one that the desk is asked for: OpenAPI cannot say another."""

    async def check(request: Request) -> AsyncIterator[None]:
        door: Door = request.app.state.door
        desk = await _desk(request)
        await desk.require(permission)
        if changes:
            door.check_writable()
        with door.counted(desk.who):
            yield

    return check


AtDesk = Annotated[Actions, Depends(_desk)]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="The same key again is the same run."),
]


def taken(kind: type[T]) -> Any:
    """The request's body as that struct; an empty one is the struct's defaults, if it has them for everything."""
    decoder = msgspec.json.Decoder(kind)

    async def read(request: Request) -> T:
        return _decoded(decoder, await _body_of(request))

    return Depends(read)


async def _body_of(request: Request) -> bytes:
    from starlette.requests import ClientDisconnect  # noqa: PLC0415  beside its only use

    try:
        return await request.body()
    except ClientDisconnect:  # as the guards say of a body that goes on for too long
        raise TooLarge("the body is too large") from None


def _decoded(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    try:
        return decoder.decode(raw or b"{}")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Unprocessable(f"the body is not what this route takes: {error}", remedy="see /docs") from None


def answer(value: Any, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(encoded(value), status.value, named, "application/json")
