"""Privacy of a store: plain columns and the search index hold masked text; what was masked is found by hashes.

Bodies, headers, keys and the whole story of failures stay as they came (G2). All else that a letter's content gets
into goes through `Columns`. Whoever opens a store with a `Privacy` has it lent to every connection, so that what
is written by one way is masked as what is written by another.

The key of the hashes is derived from a secret that the store makes once and keeps (all processes of a store have
the same, whatever their settings are: another key would silently find nothing) and from one that is not in the
database, if `Privacy` has one: without it whoever has a copy of the database can try out all CPFs.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from redrive.errors import ConfigurationError
from redrive.message import cut
from redrive.privacy.blind_index import BlindIndex
from redrive.privacy.masks import HIDDEN
from redrive.stores.private_facts import hidden_facts
from redrive.stores.sql_rows import TEXT_BUDGET
from redrive.stores.sql_secrets import BLIND_INDEX_CHECK, BLIND_INDEX_KEY, find_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from redrive.failure import Failure
    from redrive.privacy.maskers import Maskers
    from redrive.privacy.masking import Masker

T = TypeVar("T")

_LENT = "redrive.privacy"
_MOST_QUEUES = 1024
_REMEMBERED = 512


class Privacy:
    """What a store needs to keep its plain columns free of what is personal or secret."""

    def __init__(self, maskers: Maskers, secret: bytes = b"") -> None:
        self.maskers = maskers
        self.secret = secret

    def __repr__(self) -> str:
        return "Privacy(***)"


class Columns:
    """How a letter's content is written into plain columns: as it is."""

    def text(self, text: str) -> str:
        return text

    def fact(self, name: str, value: str | None) -> str | None:  # noqa: ARG002  the name tells those who mask
        """What a message says about itself: its event type, its source's id, its correlation id."""
        return value

    def optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def failure_text(self, failure: Failure) -> str:
        """Masked first and cut then: half of a number would not be known for one."""
        return cut(self.text(failure.text), TEXT_BUDGET)


class MaskedColumns(Columns):
    """With masks."""

    def __init__(self, masker: Masker) -> None:
        self.masker = masker
        # What fails, fails with the same words again and again.
        self.text = lru_cache(_REMEMBERED)(masker.text)  # type: ignore[method-assign]  # the same, remembered
        self._hidden = hidden_facts(masker)

    def fact(self, name: str, value: str | None) -> str | None:
        if value is None:
            return None
        return HIDDEN.decode() if name in self._hidden else self.masker.text(value)


PLAIN = Columns()


class Private:
    """The privacy of one open store."""

    def __init__(self, privacy: Privacy) -> None:
        self._maskers = privacy.maskers
        self._secret = privacy.secret
        self._index: BlindIndex | None = None
        self.columns = lru_cache(_MOST_QUEUES)(self._columns)

    def _columns(self, queue: str) -> MaskedColumns:
        return MaskedColumns(self._maskers.for_queue(queue))

    @property
    def is_ready(self) -> bool:
        return self._index is not None

    def index(self, connection: Connection) -> BlindIndex | None:
        """None: nothing was ever indexed, so nothing can be found."""
        if self._index is None:
            kept, check = (find_secret(connection, name) for name in (BLIND_INDEX_KEY, BLIND_INDEX_CHECK))
            if kept is None or check is None:
                return None
            if not hmac.compare_digest(check, self.check_of(kept)):
                raise ConfigurationError(
                    "the store's search index was made with another masking.search_key",
                    remedy="give every process of the store the same masking.search_key",
                )
            self._index = BlindIndex(self._key(kept))
        return self._index

    def check_of(self, kept: bytes) -> bytes:
        """Tells whether two processes have the same key, and nothing about it."""
        return hmac.digest(self._key(kept), b"redrive blind index check", "sha256")

    def _key(self, kept: bytes) -> bytes:
        return hmac.digest(kept, self._secret, "sha256")


def lent(private: Private | None, unit: Callable[[Connection], T]) -> Callable[[Connection], T]:
    """The unit, whose connection knows the store's privacy."""
    if private is None:
        return unit

    def knowing(connection: Connection) -> T:
        connection.info[_LENT] = private
        return unit(connection)

    return knowing


def private_of(connection: Connection) -> Private | None:
    found: Private | None = connection.info.get(_LENT)
    return found


def columns_of(connection: Connection, queue: str) -> Columns:
    """How content of the queue's letters is written by this connection."""
    private = private_of(connection)
    return PLAIN if private is None else private.columns(queue)
