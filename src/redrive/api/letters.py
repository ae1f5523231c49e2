"""`/dlq`: letters, in pages and one by one."""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Path, Query, Request
from msgspec import UNSET
from msgspec.structs import replace
from starlette.responses import Response

from redrive.access import Permission
from redrive.actions import Actions
from redrive.api import letter_wire as wire
from redrive.api.asking import AskedFor
from redrive.api.cursors import place_of
from redrive.api.letter_bounds import AskedBounds
from redrive.api.problems import Outdated, PreconditionMissing, Unprocessable
from redrive.api.routes import AtDesk, IdempotencyKey, Routes, answer, taken
from redrive.api.runs import accepted, one_letter
from redrive.api.selection import LettersAsked
from redrive.dead_letter import Transition
from redrive.errors import NotFound, Refused, TransitionRefused
from redrive.header_json import headers_of
from redrive.letter_query import MAX_PAGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redrive.actions import Changed
    from redrive.letter_query import LetterQuery

letters = Routes("Letters")

_LONGEST_NUMBER = 9
UNSAID = "no reason was given"
COUNTED = 10_000
"""A number beyond it costs a look at every letter, and is told as "more than"."""

_CHANGES: dict[str, tuple[Callable[..., Awaitable[Changed]], Transition]] = {
    "resolve": (Actions.resolve, Transition.RESOLVE),
    "discard": (Actions.discard, Transition.DISCARD),
    "restore": (Actions.restore, Transition.RESTORE),
    "quarantine": (Actions.quarantine, Transition.QUARANTINE),
    "release": (Actions.release, Transition.RELEASE),
    "purge": (Actions.purge, Transition.PURGE),
}

LetterId = Annotated[str, Path(description="The letter's id, or a beginning that only it has.", max_length=64)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Why = Annotated[str, Query(max_length=1000, description="Why: the history keeps it.")]


@letters.at("GET", "/dlq", Permission.READ, answers=wire.LetterPage, summary="List letters, newest first")
async def list_letters(
    desk: AtDesk,
    query: AskedFor,
    limit: Limit = 50,
    after: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    before: Annotated[str | None, Query(description="`previous` of the page behind.")] = None,
    count: Annotated[bool, Query(description="Count all that match as well.")] = False,
) -> Response:
    found = await desk.letters(_from(query, limit, after, before))
    number = await desk.count(query, at_most=COUNTED) if count else None
    unsearched = await desk.search_backlog(query)
    begun = after is not None or before is not None
    return answer(wire.page(found, limit, begun=begun, count=number, unsearched=unsearched))


@letters.at(
    "POST",
    "/dlq-search",
    Permission.READ,
    takes=LettersAsked,
    answers=wire.LetterPage,
    reads=True,
    summary="List letters, newest first, by a body: what is looked for stands in no URL",
)
async def search(request: Request, desk: AtDesk, asked: Annotated[LettersAsked, taken(LettersAsked)]) -> Response:
    query = asked.selection.query(request.app.state.door.clock.now())
    found = await desk.letters(_from(query, asked.limit, asked.after, asked.before))
    number = await desk.count(query, at_most=asked.count_at_most) if asked.count else None
    unsearched = await desk.search_backlog(query)
    begun = asked.after is not None or asked.before is not None
    return answer(wire.page(found, asked.limit, begun=begun, count=number, unsearched=unsearched))


def _from(query: LetterQuery, limit: int, after: str | None, before: str | None) -> LetterQuery:
    if after is not None and before is not None:
        raise Unprocessable("after and before exclude each other", remedy="give one of them")
    return replace(
        query,
        limit=limit,
        after=None if after is None else place_of(after),
        before=None if before is None else place_of(before),
    )


@letters.at(
    "GET",
    "/dlq/{letter_id}",
    Permission.READ,
    answers=wire.Letter,
    also=(HTTPStatus.NOT_FOUND,),
    summary="One letter with its message and its whole story, masked",
)
async def show(letter_id: LetterId, desk: AtDesk, bounds: AskedBounds) -> Response:
    letter = await desk.letter(letter_id)
    return answer(bounds.told(letter), etag=_etag(letter.revision))


@letters.at(
    "POST",
    "/dlq/{letter_id}/reveal",
    Permission.REVEAL,
    takes=wire.Reason,
    answers=wire.Letter,
    summary="One letter unmasked; who looked, and why, is written down",
)
async def reveal(
    letter_id: LetterId,
    desk: AtDesk,
    why: Annotated[wire.Reason, taken(wire.Reason)],
    bounds: AskedBounds,
) -> Response:
    letter = await desk.reveal(letter_id, why.reason)
    return answer(bounds.told(letter), etag=_etag(letter.revision))


@letters.at(
    "GET",
    "/dlq/{letter_id}/attempts",
    Permission.READ,
    answers=wire.Attempts,
    also=(HTTPStatus.NOT_FOUND,),
    summary="Every attempt that failed, oldest first",
)
async def attempts(letter_id: LetterId, desk: AtDesk) -> Response:
    return answer({"items": wire.whole(await desk.letter(letter_id))["failures"]})


@letters.at(
    "GET",
    "/dlq/{letter_id}/revisions",
    Permission.READ,
    answers=wire.Revisions,
    also=(HTTPStatus.NOT_FOUND,),
    summary="The original, and what edits have made of it",
)
async def revisions(letter_id: LetterId, desk: AtDesk, bounds: AskedBounds) -> Response:
    letter = await desk.letter(letter_id)
    return answer({"items": bounds.told(letter)["revisions"]}, etag=_etag(letter.revision))


@letters.at(
    "POST",
    "/dlq/{letter_id}/revisions",
    Permission.EDIT,
    takes=wire.NewRevision,
    answers=wire.RevisionMade,
    status=HTTPStatus.CREATED,
    also=(HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED),
    summary="Edit a letter on top of the revision that If-Match names",
)
async def revise(
    letter_id: LetterId,
    desk: AtDesk,
    edit: Annotated[wire.NewRevision, taken(wire.NewRevision)],
    if_match: Annotated[str | None, Header(description="The ETag of the letter that is edited.")] = None,
) -> Response:
    base = _base(if_match)
    try:
        number = await _revised(desk, letter_id, edit, base)
    except TransitionRefused:
        raise
    except Refused as refused:
        current = (await desk.letter(letter_id)).revision
        if current != base:
            raise Outdated(str(refused), remedy=refused.remedy) from None
        raise
    return answer(wire.RevisionMade(number), HTTPStatus.CREATED, etag=_etag(number))


async def _revised(desk: Actions, letter_id: str, edit: wire.NewRevision, base: int) -> int:
    if edit.revert_to is not UNSET:
        return await desk.revert(letter_id, to=edit.revert_to, base=base, reason=edit.reason)
    given: dict[str, Any] = {}
    if edit.payload is not UNSET:
        given["payload"] = raw_bytes(edit.payload, edit.payload_encoding, "payload")
    if edit.body is not UNSET:
        given["body"] = None if edit.body is None else raw_bytes(edit.body, edit.body_encoding)
    if edit.headers is not UNSET:
        given["headers"] = message_headers(edit.headers)
    if not given:
        raise Unprocessable("nothing is edited", remedy="give payload, body, headers or revert_to")
    return await desk.revise(letter_id, base=base, reason=edit.reason, **given)


def raw_bytes(text: str, encoding: str, name: str = "body") -> bytes:
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
    except (binascii.Error, UnicodeEncodeError, ValueError):
        raise Unprocessable(f"{name} is not {encoding}", remedy=f"say by {name}_encoding what it is") from None


def message_headers(given: list[Any]) -> Any:
    try:
        return headers_of(given)
    except ValueError as error:
        raise Unprocessable(f"headers: {error}", remedy="give them as message.headers has them") from None


def _etag(revision: int) -> str:
    return f'"{revision}"'


def _base(if_match: str | None) -> int:
    if if_match is None:
        remedy = "send the ETag of the letter as If-Match: it says what the edit is based on"
        raise PreconditionMissing("If-Match is missing", remedy=remedy)
    named = if_match.strip().removeprefix("W/").strip('"')
    if not (named.isascii() and named.isdigit()) or len(named) > _LONGEST_NUMBER:
        raise Outdated(f"no revision has the ETag {if_match}", remedy="take the ETag of the letter, unchanged")
    return int(named)


@letters.at(
    "POST",
    "/dlq/{letter_id}/retry",
    Permission.REDRIVE,
    answers=wire.RetryAccepted,
    status=HTTPStatus.ACCEPTED,
    summary="Send a letter back to its queue, as a run of its own",
)
async def retry(request: Request, letter_id: LetterId, desk: AtDesk, key: IdempotencyKey = None) -> Response:
    run = await one_letter(desk, letter_id, key)
    return accepted(request, run, wire.RetryAccepted(run.id, str(run.status)))


@letters.at(
    "PUT",
    "/dlq/{letter_id}/resolve",
    Permission.DECIDE,
    answers=wire.LettersChanged,
    summary="Mark a letter as solved",
)
async def resolve(
    letter_id: LetterId,
    desk: AtDesk,
    reason: Why = "",
    resolved_by: Annotated[
        str, Query(alias="resolvedBy", max_length=200, description="A remark. Who did it is who asks.")
    ] = "",
) -> Response:
    remark = f"resolved by {resolved_by}" if resolved_by.strip() else ""
    why = "; ".join(each for each in (reason.strip(), remark) if each)
    return answer(await _changed(desk, "resolve", letter_id, why))


@letters.at(
    "DELETE",
    "/dlq/{letter_id}",
    Permission.DECIDE,
    status=HTTPStatus.NO_CONTENT,
    summary="Discard a letter; it can be restored",
)
async def discard(letter_id: LetterId, desk: AtDesk, reason: Why = "") -> Response:
    await _changed(desk, "discard", letter_id, reason)
    return Response(status_code=HTTPStatus.NO_CONTENT.value)


@letters.at(
    "POST",
    "/dlq/{letter_id}/restore",
    Permission.DECIDE,
    takes=wire.Reason,
    answers=wire.LettersChanged,
    summary="Make a resolved or discarded letter pending again",
)
async def restore(letter_id: LetterId, desk: AtDesk, why: Annotated[wire.Reason, taken(wire.Reason)]) -> Response:
    return answer(await _changed(desk, "restore", letter_id, why.reason))


@letters.at(
    "POST",
    "/dlq-changes",
    Permission.DECIDE,
    takes=wire.LetterChange,
    answers=wire.LettersChanged,
    summary="Resolve, discard, restore, quarantine, release or purge several letters",
)
async def change(desk: AtDesk, asked: Annotated[wire.LetterChange, taken(wire.LetterChange)]) -> Response:
    if len(asked.ids) > MAX_PAGE:
        raise Unprocessable(f"{len(asked.ids)} letters at once", remedy=f"give at most {MAX_PAGE} ids")
    act, transition = _CHANGES[asked.change]
    ids = await desk.identify(asked.ids)
    done = await (desk.preview(ids, transition) if asked.dry_run else act(desk, ids, asked.reason))
    return answer(wire.LettersChanged(list(done.done), dict(done.left)))


async def _changed(desk: Actions, name: str, letter_id: str, reason: str) -> wire.LettersChanged:
    act, transition = _CHANGES[name]
    (whole_id,) = await desk.identify([letter_id])
    done = await act(desk, [whole_id], reason.strip() or UNSAID)
    for each, status in done.left.items():
        if status is None:
            raise NotFound(f"no letter {each}", remedy="GET /api/v1/dlq lists the ids")
        raise TransitionRefused(each, transition, status)
    return wire.LettersChanged(list(done.done), {})
