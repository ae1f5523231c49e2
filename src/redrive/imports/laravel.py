"""Rows of Laravel's `failed_jobs` (id, uuid, connection, queue, payload, exception, failed_at), from any dump.

The body is the payload, byte for byte, so that it can be sent back to a Laravel queue. The identity is connection,
queue and uuid: a row that is imported twice is one letter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from redrive.imports.php_exception import read_exception
from redrive.imports.values import checked_name, failed_once, moment
from redrive.message import Message

if TYPE_CHECKING:
    from datetime import datetime

    from redrive.dead_letter import Entry
    from redrive.imports.rows import Row

_COLUMNS = {"payload", "exception", "failed_at"}
_LARGEST_READ = 16 * 1024 * 1024
_LONGEST_NAME = 500


def recognises(row: Row) -> bool:
    return row.values.keys() >= _COLUMNS


def letter_of_row(row: Row) -> Entry:
    payload, queue = _text(row, "payload"), checked_name("queue", row.values.get("queue"))
    failed_at = moment("failed_at", row.values.get("failed_at"))
    job = _job(payload)
    uuid = _uuid(row.values, job)
    return failed_once(
        Message(id=uuid, queue=queue, body=_bytes(payload), sent_at=_sent_at(job, failed_at)),
        "laravel:" + json.dumps([row.values.get("connection"), queue, uuid]),
        handler=_handler(job),
        attempts=_attempts(job),
        at=failed_at,
        chain=read_exception(_text(row, "exception")),
    )


def _text(row: Row, column: str) -> str:
    found = row.values.get(column)
    if not isinstance(found, str):
        raise ValueError(f"{column} should be a text, as the column holds it")  # noqa: TRY004  one error for callers
    return found


def _job(payload: str) -> dict[str, Any]:
    """What the payload says. One that cannot be read is a payload all the same: it may be why the job failed."""
    try:
        found = json.loads(payload) if len(payload) <= _LARGEST_READ else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _uuid(values: dict[str, Any], job: dict[str, Any]) -> str:
    """Older tables have no uuid, and older jobs neither."""
    for found in (values.get("uuid"), job.get("uuid"), values.get("id"), job.get("id")):
        if isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip():
            return str(found).strip()
    raise ValueError("there is neither a uuid nor an id to know it by")


def _handler(job: dict[str, Any]) -> str:
    named = next((job[name] for name in ("displayName", "job") if isinstance(job.get(name), str)), "")
    return named[:_LONGEST_NAME] or "unknown"


def _attempts(job: dict[str, Any]) -> int:
    numbers = (job.get(name) for name in ("attempts", "maxTries"))
    return next((each for each in numbers if isinstance(each, int) and not isinstance(each, bool) and each > 0), 1)


def _sent_at(job: dict[str, Any], failed_at: datetime) -> datetime:
    """`createdAt` of the queue, else `pushedAt` of Horizon, both in seconds since 1970."""
    for given in (job.get("createdAt"), job.get("pushedAt")):
        try:
            return moment("createdAt", float(given) if isinstance(given, str) else given)
        except ValueError:
            continue
    return failed_at


def _bytes(payload: str) -> bytes:
    try:
        return payload.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # halves of surrogate pairs, which no table of theirs holds
        return payload.encode("utf-8", "surrogatepass")
