"""Which kind a failure is: by the exception's type tree, by name for types nobody here can import, by predicate,
or by cause. Rules nearer to the handler win: handler, queue, app, defaults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

import msgspec

from redrive.errors import HandlerSignal, Permanent, Transient
from redrive.failure import FailureKind, type_name

Predicate = Callable[[BaseException], bool]


class CausedBy(msgspec.Struct, frozen=True):
    """Matches an exception that has one of these types anywhere behind it (`raise … from …`)."""

    types: tuple[type[BaseException], ...]

    def __call__(self, error: BaseException) -> bool:
        seen: set[int] = set()
        current = _behind(error)
        while current is not None and id(current) not in seen:
            if isinstance(current, self.types):
                return True
            seen.add(id(current))
            current = _behind(current)
        return False


def _behind(error: BaseException) -> BaseException | None:
    return error.__context__ if error.__cause__ is None else error.__cause__


def caused_by(*types: type[BaseException]) -> CausedBy:
    return CausedBy(types)


Matcher = type[BaseException] | str | Predicate
Kinds = Mapping[Matcher, FailureKind | str]
"""What matches: an exception type (and all below it), a name like `stripe.error.RateLimitError` or
`botocore.*`, a predicate, or `caused_by(…)`."""

DEFAULTS: Kinds = {
    Transient: FailureKind.TRANSIENT,
    Permanent: FailureKind.PERMANENT,
    TimeoutError: FailureKind.TRANSIENT,
    asyncio.TimeoutError: FailureKind.TRANSIENT,
    ConnectionError: FailureKind.TRANSIENT,
    ValueError: FailureKind.PERMANENT,
    TypeError: FailureKind.PERMANENT,
    msgspec.DecodeError: FailureKind.PERMANENT,
    "pydantic_core._pydantic_core.ValidationError": FailureKind.PERMANENT,
    "jsonschema.exceptions.ValidationError": FailureKind.PERMANENT,
    "marshmallow.exceptions.ValidationError": FailureKind.PERMANENT,
    MemoryError: FailureKind.CRITICAL,
    RecursionError: FailureKind.CRITICAL,
}
"""What a Python team would expect. Unknown types are transient: retrying is bounded and may help."""


class _Level:
    """One level's rules: predicates in their written order first, then the nearest type or name in the tree.

    A predicate that itself fails on an exception does not match it: a failure must always get a kind.
    """

    def __init__(self, kinds: Kinds) -> None:
        self._types: dict[type[BaseException], FailureKind] = {}
        self._names: list[tuple[str, FailureKind]] = []
        self._predicates: list[tuple[Predicate, FailureKind]] = []
        for matcher, kind in kinds.items():
            self._add(matcher, FailureKind(kind))

    def _add(self, matcher: Matcher, kind: FailureKind) -> None:
        if isinstance(matcher, str):
            self._names.append((matcher, kind))
        elif isinstance(matcher, type) and issubclass(matcher, BaseException):
            self._types[matcher] = kind
        elif not isinstance(matcher, type) and callable(matcher):
            self._predicates.append((matcher, kind))
        else:
            raise TypeError(
                f"{matcher!r} cannot match an exception: use an exception's type, a name or a function"
            )

    def classify(self, error: BaseException) -> FailureKind | None:
        for predicate, kind in self._predicates:
            if _matches(predicate, error):
                return kind
        by_name = bool(self._names) and not isinstance(error, HandlerSignal)
        for cls in _tree(error):
            if cls in self._types:
                return self._types[cls]
            if by_name and (named := self._named(cls)):
                return named
        return None

    def _named(self, cls: type[BaseException]) -> FailureKind | None:
        full = type_name(cls)
        return next((kind for pattern, kind in self._names if fnmatchcase(full, pattern)), None)


def _matches(predicate: Predicate, error: BaseException) -> bool:
    try:
        return bool(predicate(error))
    except Exception:  # noqa: BLE001  the predicate is the team's code, and any code can fail
        return False


_EVERYTHING = frozenset({HandlerSignal, Exception, BaseException})


def _tree(error: BaseException) -> list[type[BaseException]]:
    """Its type and those above it. What a handler said itself, and what the members of a group say, outweighs
    a rule for every exception there is, so for those the tree ends below that.
    """
    speaks = isinstance(error, HandlerSignal | BaseExceptionGroup)
    return [
        cls
        for cls in type(error).__mro__
        if issubclass(cls, BaseException) and not (speaks and cls in _EVERYTHING)
    ]


class Classifier:
    """`levels` from the nearest to the farthest; the defaults come last by themselves."""

    def __init__(self, *levels: Kinds) -> None:
        self._levels = [_Level(kinds) for kinds in (*levels, DEFAULTS) if kinds]

    def classify(self, error: BaseException) -> FailureKind:
        for level in self._levels:
            if (kind := level.classify(error)) is not None:
                return kind
        if isinstance(error, BaseExceptionGroup):
            return self._worst(error)
        return FailureKind.TRANSIENT

    def _worst(self, group: BaseExceptionGroup[BaseException]) -> FailureKind:
        # Retrying a group helps only if it helps every member.
        kinds = {self.classify(member) for member in group.exceptions}
        for kind in (FailureKind.CRITICAL, FailureKind.PERMANENT):
            if kind in kinds:
                return kind
        return FailureKind.TRANSIENT
