"""How values of settings are written, and what they become: durations, sizes, names, filters, windows.

Every function takes what somebody wrote and raises ValueError with the accepted forms for anything else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, InstanceOf

from redrive.duration import seconds
from redrive.errors import FilterError
from redrive.json_path import tokens_of
from redrive.ordering import OrderedBy
from redrive.run import MAX_RATE
from redrive.search import parse
from redrive.secret_text import SecretText
from redrive.secret_url import SecretUrl

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|kB|MB|GB)?\s*")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_WINDOW = re.compile(r"\s*((?:[01]\d|2[0-3]):[0-5]\d)\s*-\s*((?:[01]\d|2[0-3]):[0-5]\d)\s*")
_RULE_NAME = re.compile(r"[\w.-]{1,60}")
_NAME_IN_SCHEMA = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*")
_T = TypeVar("_T")


def size(value: object) -> int:
    """A size in bytes. ValueError with the accepted forms for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a size: write it like '64MiB', '500kB' or a number of bytes")
    return int(float(found[1]) * _UNITS[found[2] or "B"])


def number(value: _T) -> _T:
    if isinstance(value, bool):  # Python takes true for 1
        raise ValueError("should be a number, not true or false")  # noqa: TRY004  pydantic collects ValueErrors
    return value


def unset(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def _items(value: Any) -> Any:
    # A variable holds one text; a file holds a list.
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _url(value: Any) -> Any:
    if isinstance(value, SecretUrl):
        return value
    if not isinstance(value, str) or "://" not in value:
        raise ValueError("should be a URL such as 'sqlite:///redrive.db'")  # the value may be a secret
    return SecretUrl(value.strip())


def _template(value: Any) -> Any:
    if (
        not isinstance(value, str)
        or value.count("{queue}") != 1
        or re.search(r"[{}]", value.replace("{queue}", ""))
    ):
        raise ValueError("should hold {queue} once and no other braces, such as '{queue}_dlq'")
    if value == "{queue}":
        raise ValueError("should add something to {queue}, or it would be the queue itself")
    return value


def _optional_template(value: Any) -> Any:
    return None if value is None else _template(value)


def _optional_secret(value: Any) -> Any:
    if value is None or isinstance(value, SecretText):
        return value
    if not isinstance(value, str) or not value.strip():
        raise ValueError("should be a secret text, or 'none'")
    return SecretText(value.strip())


def _optional_url(value: Any) -> Any:
    return None if value is None else _url(value)


def _view(value: Any) -> Any:
    if value is not None and not (isinstance(value, str) and _NAME_IN_SCHEMA.fullmatch(value)):
        raise ValueError("should be a schema and a name, such as 'public.dlq_events', or 'none'")
    return value


def filter_text(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("should be a filter, such as 'kind:transient queue:orders'")
    try:
        parse(value, now=datetime.now(UTC))  # whether it is one does not depend on the time
    except FilterError as error:
        raise ValueError(f"{error}; {error.remedy}") from None
    return value


def _rule_name(value: Any) -> Any:
    if not isinstance(value, str) or not _RULE_NAME.fullmatch(value):
        raise ValueError("a rule's name should be at most 60 letters, digits, '-', '_' and '.'")
    return value


def _window(value: Any) -> Any:
    if value is None or (isinstance(value, str) and (found := _WINDOW.fullmatch(value)) and found[1] != found[2]):
        return value
    raise ValueError("should be two different times of a day, such as '02:00-05:00' or '22:00-04:00', or 'none'")


def _order(value: Any) -> Any:
    try:
        if value is not None:
            OrderedBy.parse(value)
    except (ValueError, AttributeError):
        raise ValueError("should be 'key', or 'header:' and the name of a header, or 'none'") from None
    return value


def _json_paths(value: Any) -> Any:
    for path in value if isinstance(value, list | tuple) else ():
        _json_path(path)
    return value


def _json_path(path: Any) -> None:
    written = "write it like 'customer.name', 'items.*.holder' or '/customer/name'"
    try:
        tokens = tokens_of(path) if isinstance(path, str) else ()
    except ValueError as error:
        raise ValueError(f"holds a path that cannot be read: {error}; {written}") from None
    if not tokens:
        raise ValueError(f"should hold paths into the payload: {written}")


def _field_names(value: Any) -> Any:
    for name in value if isinstance(value, list | tuple) else ():
        if not isinstance(name, str) or not any(map(str.isalnum, name)):
            raise ValueError("should hold names of fields, such as 'nickname' or 'mother_name'")
    return value


def time_zone(value: Any) -> Any:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise ValueError("should be a time zone that this machine knows, such as 'Europe/Berlin'") from None
    return value


SECONDS, BYTES, SECRET, REQUIRED = "seconds", "bytes", "secret", "required"
"""Marks on fields, for those who write a value the way people do."""

Seconds = Annotated[float, BeforeValidator(seconds), SECONDS]
Bytes = Annotated[int, BeforeValidator(size), BYTES]
Count = Annotated[int, BeforeValidator(number), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(number), Field(ge=1)]
OptionalSeconds = Annotated[Annotated[float, BeforeValidator(seconds)] | None, BeforeValidator(unset), SECONDS]
OptionalDelays = Annotated[tuple[Seconds, ...] | None, BeforeValidator(_items), BeforeValidator(unset), SECONDS]
OptionalPath = Annotated[Path | None, BeforeValidator(unset)]
TypeNames = Annotated[tuple[str, ...], BeforeValidator(_items)]
QueueNames = Annotated[tuple[str, ...], BeforeValidator(_items)]
Url = Annotated[InstanceOf[SecretUrl], BeforeValidator(_url), SECRET]
OptionalSecret = Annotated[
    InstanceOf[SecretText] | None, BeforeValidator(_optional_secret), BeforeValidator(unset), SECRET
]
OptionalUrl = Annotated[
    InstanceOf[SecretUrl] | None, BeforeValidator(_optional_url), BeforeValidator(unset), SECRET
]
ViewName = Annotated[str | None, BeforeValidator(_view), BeforeValidator(unset)]
OptionalTemplate = Annotated[str | None, BeforeValidator(_optional_template), BeforeValidator(unset)]
OptionalPositive = Annotated[Positive | None, BeforeValidator(unset)]
Share = Annotated[float, BeforeValidator(number), Field(ge=0, le=1)]
OptionalShare = Annotated[Share | None, BeforeValidator(unset)]
OptionalRate = Annotated[
    Annotated[float, BeforeValidator(number), Field(gt=0, le=MAX_RATE)] | None, BeforeValidator(unset)
]
Steps = Annotated[tuple[Positive, ...], BeforeValidator(_items)]
OptionalName = Annotated[Annotated[str, Field(min_length=1)] | None, BeforeValidator(unset)]
OptionalOrder = Annotated[str | None, BeforeValidator(_order), BeforeValidator(unset)]
Timeout = Annotated[Seconds, Field(gt=0)]
OptionalTimeout = Annotated[
    Annotated[float, BeforeValidator(seconds), Field(gt=0)] | None, BeforeValidator(unset), SECONDS
]
OptionalWindow = Annotated[str | None, BeforeValidator(_window), BeforeValidator(unset)]
RuleName = Annotated[str, BeforeValidator(_rule_name)]

FilterText = Annotated[str, BeforeValidator(filter_text), REQUIRED]
TimeZone = Annotated[str, BeforeValidator(time_zone)]
JsonPaths = Annotated[tuple[str, ...], BeforeValidator(_json_paths), BeforeValidator(_items)]
FieldNameList = Annotated[tuple[str, ...], BeforeValidator(_field_names), BeforeValidator(_items)]
