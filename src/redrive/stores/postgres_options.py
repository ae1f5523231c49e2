"""Where a PostgreSQL is and how it is used: the URL, and what the settings say about the session."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from redrive.errors import ConfigurationError
from redrive.secret_url import SecretUrl

_LONGEST_NAME = 63
_MEANT_OTHERWISE = frozenset(":$")  # parameters and quotes, to those who write the migrations
_NAMES = (
    f"give store.schema a name of at most {_LONGEST_NAME} bytes, without : and $, that does not begin with pg_"
)
_PORT = re.compile(r":([^:\]]*)\Z")
_LAST_PORT = 65535
_FORMS = "write postgresql://user:password@host:5432/database, each part percent-encoded if need be"


class PostgresOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds; 0 of a timeout means none."""

    schema: str = "redrive"
    """Where our tables live. Nothing outside of it is ever touched."""
    pool_size: int = 10
    """Connections of one process, at most."""
    connect_timeout: float = 5.0
    """For a new connection, and for one of the pool to become free."""
    statement_timeout: float = 30.0
    lock_timeout: float = 5.0
    idle_in_transaction_timeout: float = 60.0
    """After which the server ends a transaction whose process is silent, so that its locks are free again."""
    view: str | None = "public.dlq_events"
    """The view of letters as S1's table, with its schema. None: no view."""

    def __post_init__(self) -> None:
        name = self.schema
        if not name.isprintable() or _MEANT_OTHERWISE & set(name) or name.startswith("pg_"):
            raise ConfigurationError(f"{name!r} cannot be the schema's name", remedy=_NAMES)
        if not 0 < len(name.encode()) <= _LONGEST_NAME:
            raise ConfigurationError(f"{name!r} is too short or too long for a schema's name", remedy=_NAMES)


class PostgresAddress:
    """The server and database of a URL. Its text, `str`, never holds the password."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
            self.database = unquote(parts.path.removeprefix("/")) or query.get("dbname", "")
        except ValueError:
            raise ConfigurationError("store.url is no URL of a PostgreSQL database", remedy=_FORMS) from None
        if not _has_sound_ports(parts.netloc):
            raise ConfigurationError("the host in store.url has a port that is no number", remedy=_FORMS)
        if not self.database:
            raise ConfigurationError("store.url names no database", remedy=_FORMS)
        timeout = query.pop("connect_timeout", None)  # libpq's, which asyncpg would take for the server's
        self.connect_timeout = None if timeout is None else _seconds(timeout)
        self.application = query.get("application_name", "redrive")
        self.dsn = parts._replace(query=urlencode(query)).geturl()
        self._shown = str(SecretUrl(parts._replace(query="").geturl()))

    def __str__(self) -> str:
        return self._shown


def quoted(name: str) -> str:
    """An identifier as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _has_sound_ports(netloc: str) -> bool:
    """Of every host that is named. The driver would quote what it takes for one: with a bare / in the password,
    that is the password.
    """
    found = (_PORT.search(host) for host in netloc.rpartition("@")[2].split(","))
    ports = [port[1] for port in found if port is not None and port[1]]
    return all(port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT for port in ports)


def _seconds(text: str) -> float:
    try:
        return float(int(text))
    except ValueError:
        raise ConfigurationError(
            "connect_timeout in store.url is no number of seconds", remedy="write connect_timeout=5"
        ) from None
