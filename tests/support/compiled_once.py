"""SQL that is compiled once for all stores of a test process, not once for each.

SQLAlchemy keeps what it has compiled with the engine, for which every dialect object is another. A program has one
engine for its whole life; the tests open thousands, and would spend most of their time compiling the same again.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import util
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.engine.default import DefaultDialect

_SIZE = 5000
_compiled: dict[type[Dialect], Any] = {}


def share() -> None:
    """For every engine of this process."""
    Engine._compiled_cache = property(_shared, _keep_none_of_its_own)  # type: ignore[assignment]
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]


def _shared(engine: Engine) -> Any:
    kind = type(engine.dialect)
    if kind not in _compiled:
        _compiled[kind] = util.LRUCache(_SIZE)
    return _compiled[kind]


def _keep_none_of_its_own(_: Engine, __: Any) -> None: ...
