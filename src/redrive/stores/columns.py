"""Column types that give back exactly what was put in, on every database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text
from sqlalchemy.types import TypeDecorator

from redrive.epoch import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine

_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND

_ESCAPE = "\u241b"
_UNSTORABLE = re.compile(f"[\x00\ud800-\udfff{_ESCAPE}]")
_ESCAPED = re.compile(f"{_ESCAPE}([0-9a-f]{{4}})")


class Moment(TypeDecorator[datetime]):
    """An aware time as microseconds since 1970 in UTC: exact, sortable, and the same number everywhere."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  as above
        return None if value is None else moment(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:  # noqa: ARG002  as above
        return _moment_or_none  # past what calls `process_result_value`: a page has a thousand values


class ExactText(TypeDecorator[str]):
    """Any Python text. What no database stores as text (NUL, lone surrogates) is escaped character by
    character, so that equality and beginnings still compare; all other text stands as it is. Sorts by bytes.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  as above
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  as above
        return None if value is None else unescape(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:  # noqa: ARG002  as above
        return _text_or_none  # as in Moment


def microseconds(value: datetime) -> int:
    """A time without a zone counts as UTC; one beyond the calendar's ends in UTC becomes the end."""
    if value.tzinfo is UTC:  # nearly all, and never beyond the calendar
        return (value - EPOCH) // _MICROSECOND
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return max(_FIRST, min(_LAST, (aware - EPOCH) // _MICROSECOND))


def moment(value: int) -> datetime:
    return EPOCH + timedelta(microseconds=value)


def escape_all(texts: Sequence[str | None]) -> Sequence[str | None]:
    """As `escape` for each: hundreds that need none are known at one glance, and given back as they are."""
    together = "".join(filter(None, texts))
    if together.isascii() and "\0" not in together:
        return texts
    return [None if text is None else escape(text) for text in texts]


def escape(text: str) -> str:
    if text.isascii() and "\0" not in text:  # nearly all, and known at a glance
        return text
    return _UNSTORABLE.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", text)


def _moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else EPOCH + timedelta(microseconds=value)


def _text_or_none(text: str | None) -> str | None:
    return text if text is None or _ESCAPE not in text else unescape(text)


def unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text
