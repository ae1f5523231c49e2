"""Header values as JSON values, and back exactly (G2): types, big numbers, text that is no Unicode.

What JSON knows stands as it is. What it does not know is an object with one key that says what it is:

| value | written |
|---|---|
| bytes | `{"base64": "AP8="}` |
| a moment | `{"time": "2026-03-01T12:00:00+00:00"}` |
| an integer beyond 64 bits | `{"int": "-0x1000000000000000000"}` |
| NaN and the infinities | `{"float": "nan"}` |
| a table whose keys are not all text, or that looks like one of these | `{"table": [[key, value], ...]}` |
"""

from __future__ import annotations

import base64
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from redrive.message import Headers

_MAX_DEPTH = 64
_NOT_FINITE = {"nan", "inf", "-inf"}


def plain_headers(headers: Headers) -> list[list[Any]]:
    return [[name, plain(value)] for name, value in headers]


def headers_of(plain_pairs: Any) -> Headers:
    """What `plain_headers` was given. ValueError says what is wrong with anything else."""
    if not isinstance(plain_pairs, list):
        raise ValueError("headers should be a list of pairs")  # noqa: TRY004  one error for every wrong file
    return tuple(_pair(each) for each in plain_pairs)


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return {"int": hex(value)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return _table(value) if isinstance(value, dict) else value


def value_of(value: Any, depth: int = 0) -> Any:
    """What `plain` was given. ValueError says what is wrong with anything else."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"a header nests deeper than {_MAX_DEPTH} levels")
    if isinstance(value, list):
        return [value_of(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if _is_marked(value):
        ((mark, content),) = value.items()
        return _marked(mark, content, depth)
    return {key: value_of(item, depth + 1) for key, item in value.items()}


def _table(value: dict[Any, Any]) -> Any:
    if all(isinstance(key, str) for key in value) and not _is_marked(value):
        return {key: plain(item) for key, item in value.items()}
    return {"table": [[plain(key), plain(item)] for key, item in value.items()]}


def _is_marked(value: dict[Any, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in ("table", *_READERS)


def _marked(mark: str, content: Any, depth: int) -> Any:
    try:
        if mark == "table":
            return {_key(key): value_of(item, depth + 1) for key, item in content}
        return _READERS[mark](content)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a header's {mark!r} cannot be read: {error}") from None


def _pair(pair: Any) -> tuple[str, Any]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):  # noqa: PLR2004  name and value
        raise ValueError("a header should be a pair of its name and its value")
    return pair[0], value_of(pair[1])


def _key(key: Any) -> Any:
    found = value_of(key)
    hash(found)
    return found


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _float(text: str) -> float:
    if text not in _NOT_FINITE:
        raise ValueError("should be nan, inf or -inf")
    return float(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "base64": _bytes,
    "time": _moment,
    "int": lambda text: int(text, 16),
    "float": _float,
}
