"""`/docs`: the API for people, made of the same OpenAPI, with no script and nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

docs = APIRouter(include_in_schema=False)

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
details { border: 1px solid #8888; border-radius: 6px; margin: .4rem 0; }
summary { padding: .4rem .7rem; cursor: pointer; } details > div { padding: 0 1rem 1rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; } pre { overflow-x: auto; }
.method { display: inline-block; min-width: 4.2rem; font-weight: 600; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
"""


@docs.get("/docs")
async def page(request: Request) -> Response:
    return HTMLResponse("".join(_page(request.app.openapi(), request.scope.get("root_path", ""))))


@docs.get("/docs.css")
async def style() -> Response:
    return Response(_STYLE, media_type="text/css")


def _page(told: Mapping[str, Any], root: str) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><meta charset="utf-8"><title>Redrive API</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<link rel="stylesheet" href="{escape(root)}/docs.css">'
    yield f"<h1>Redrive API {escape(told['info']['version'])}</h1>"
    yield f"<p>{escape(told['info']['summary'])} Every request sends <code>Authorization: Bearer rdv_...</code>; "
    yield f'<a href="{escape(root)}/api/v1/openapi.json">OpenAPI</a> has every detail.</p>'
    for tag, operations in _by_tag(told).items():
        yield f"<h2>{escape(tag)}</h2>"
        for path, method, operation in operations:
            yield from _operation(root + path, method.upper(), operation, told)


def _by_tag(told: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Any]]]:
    found: dict[str, list[tuple[str, str, Any]]] = {}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            found.setdefault(operation["tags"][0], []).append((path, method, operation))
    return found


def _operation(path: str, method: str, operation: Any, told: Mapping[str, Any]) -> Iterator[str]:
    yield f'<details><summary><span class="method">{method}</span> <code>{escape(path)}</code> '
    yield f"{escape(operation['summary'])}</summary><div>"
    if permission := operation.get("x-permission"):
        yield f"<p>Needs the permission <code>{escape(permission)}</code>.</p>"
    if parameters := operation.get("parameters"):
        yield "<table><tr><th>Parameter</th><th>In</th><th></th></tr>"
        for each in parameters:
            text = each.get("description", "") or each["schema"].get("description", "")
            yield f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td>"
            yield f"<td>{escape(text)}</td></tr>"
        yield "</table>"
    yield from _body(operation, told)
    yield "<table><tr><th>Answer</th><th></th></tr>"
    for status, answer in sorted(operation["responses"].items()):
        yield f"<tr><td><code>{status}</code></td><td>{escape(answer['description'])}</td></tr>"
    yield "</table></div></details>"


def _body(operation: Any, told: Mapping[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return
    name = content["schema"]["$ref"].rpartition("/")[2]
    schema = told["components"]["schemas"][name]
    yield f"<p>Body: {escape(schema.get('description', name))}</p><table>"
    needed = schema.get("required", [])
    for field in schema["properties"]:
        yield f"<tr><td><code>{escape(field)}</code></td><td>{'needed' if field in needed else ''}</td></tr>"
    yield "</table>"
