"""A PostgreSQL of the tests' own: made in a temporary folder, on a free loopback port, gone with the tests.

`REDRIVE_TEST_POSTGRES=postgresql://...` names an existing server instead; its role must be allowed to make
databases, and the tests that stop the server are then skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from redrive.ledger import GENESIS
from redrive.stores.schema import compatibility, counter_deltas, metadata
from redrive.stores.upgrade import upgrade
from redrive.uptime import uptime
from support.in_memory import folder_in_memory
from support.loopback_ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

T = TypeVar("T")

EXISTING = "REDRIVE_TEST_POSTGRES"


def _new_clock_note() -> str:
    """As in a store that was made this moment."""
    now, running = int(time.time() * 1e6), uptime()
    values = f"('{running.boot}', {now}, {running.seconds})"
    return f"INSERT INTO redrive.clock_notes (boot, at, seconds) VALUES {values}"  # noqa: S608  numbers of ours


ROLE = "redrive"
_PATIENCE = 60.0
_END_OTHERS = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1"
_OLDEST = "SELECT oldest FROM redrive.redrive_compatibility"
_NEW_LEDGER = f"INSERT INTO redrive.ledger_head VALUES (1, 0, '{GENESIS}', '', '')"  # noqa: S608  a name of ours
_LOOK_EVERY = 0.01
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_STATUS_LINE = 7  # of postmaster.pid, which begins with the process id and ends with "ready"


class PostgresServer:
    """A server that the tests may ask for databases, whoever started it."""

    def __init__(self, base: str) -> None:
        self._base = urlsplit(base)
        self._made: list[str] = []
        self._store: str | None = None
        self._oldest = ""

    def url(self, database: str = "postgres") -> str:
        return urlunsplit(self._base._replace(path=f"/{database}"))

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"redrive_test_{uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        self._made.append(name)
        return self.url(name)

    def emptied_store(self) -> str:
        """The URL of a database with our tables and nothing in them: always the same one, which is cheaper than a
        new one. Nobody else may use it meanwhile.
        """
        if self._store is None:
            self._store = self.new_database()
            upgrade(self._store)
            [(self._oldest,)] = self.fetch(_OLDEST, url=self._store)
        # Not TRUNCATE, which costs a file per table and index. The counters last: deleting letters counts too.
        tables = [table.name for table in reversed(metadata.sorted_tables) if table is not compatibility]
        tables.sort(key=counter_deltas.name.__eq__)
        self.fetch(_END_OTHERS, urlsplit(self._store).path.removeprefix("/"))  # of a test that failed
        script = "; ".join(f'DELETE FROM redrive."{name}"' for name in tables)  # noqa: S608  names of ours
        again = f"UPDATE redrive.redrive_compatibility SET oldest = '{self._oldest}'"  # noqa: S608  as above
        self.run(f"{script}; {_NEW_LEDGER}; {again}; {_new_clock_note()}", url=self._store)
        return self._store

    def drop_database(self, url: str) -> None:
        """Without waiting for those who still use it."""
        name = urlsplit(url).path.removeprefix("/")
        self._made.remove(name)
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, statement: str, *, url: str | None = None) -> None:
        """One statement by a connection of its own; works inside and outside of an event loop."""
        self.fetch(statement, url=url)

    def run(self, script: str, *, url: str | None = None) -> None:
        """Several statements in one transaction."""
        _elsewhere(_run(url or self.url(), script))

    def fetch(self, statement: str, *values: Any, url: str | None = None) -> list[tuple[Any, ...]]:
        return _elsewhere(_ask(url or self.url(), statement, values))

    def is_somebody_waiting(self) -> bool:
        """Whether some statement waits for a lock."""
        return self.fetch("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != [(0,)]

    def clean_up(self) -> None:
        for name in list(self._made):
            self.drop_database(self.url(name))


class PrivatePostgres(PostgresServer):
    """A server of our own, which a test may stop, start and kill. It keeps its port and its data."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._binaries = _binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="redrive-pg-", dir=folder_in_memory()))
        [self._port] = free_ports(1)
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        super().__init__(f"postgresql://{ROLE}@127.0.0.1:{self._port}/postgres")
        self._make()
        self.start()

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    @property
    def data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            if self._process is None:
                self._process = self._spawn()
            if self._is_ready(self._process.pid):
                return
            if self._process.poll() is not None:
                self._process = None  # after a kill, the dead one's children may still hold its memory
            assert time.monotonic() < deadline, f"PostgreSQL does not start:\n{self.log}"
            time.sleep(_LOOK_EVERY)

    def stop(self) -> None:
        """The fast way: connections are cut, what is committed is on disk."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """As a power cut of the server's process: no shutdown, and recovery from the log at the next start."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def ask_for_passwords(self, role: str) -> None:
        """From now on this role needs its password, and everybody else still none."""
        rules = self._folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        self.execute("SELECT pg_reload_conf()")

    def clean_up(self) -> None:
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self) -> None:
        if os.geteuid() == 0:
            account = _account()
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        data = str(self._folder / "data")
        made = ["--pgdata", data, "--username", ROLE, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"]
        subprocess.run(
            [self._binaries / "initdb", *made, "--no-sync"],  # only the empty cluster; its server does sync
            check=True,
            capture_output=True,
            cwd=self._folder,
            **_as_whom(),
        )

    def _spawn(self) -> subprocess.Popen[bytes]:
        options = {
            "port": str(self._port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._folder),
            **self._settings,
        }
        given = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._binaries / "postgres", "-D", self._folder / "data", *given],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for pytest, which then stops us
                preexec_fn=_die_with_the_tests,  # noqa: PLW1509  a killed pytest runs no finalizer
                **_as_whom(),
            )

    def _is_ready(self, pid: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            lines = (self._folder / "data" / "postmaster.pid").read_text().splitlines()
            return len(lines) > _STATUS_LINE and int(lines[0]) == pid and lines[_STATUS_LINE].strip() == "ready"
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=_PATIENCE)
            self._process = None


def available() -> PostgresServer:
    """The server for this session's tests; skips (fails with CI=true) where there is none."""
    existing = os.environ.get(EXISTING)
    return PostgresServer(existing) if existing else PrivatePostgres()


def own(settings: Mapping[str, str] | None = None) -> PrivatePostgres:
    """A second server, for tests that stop it or set it up differently."""
    if os.environ.get(EXISTING):
        pytest.skip(f"{EXISTING} names a server that tests do not stop")
    return PrivatePostgres(settings)


def _binaries() -> Path:
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: float(each.parent.name))
    found = shutil.which("postgres")
    candidates = [*reversed(packaged), *([Path(found).resolve().parent] if found else [])]
    for folder in candidates:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    missing = f"no PostgreSQL here: apt-get install postgresql, or set {EXISTING}=postgresql://..."
    if os.environ.get("CI") == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def _as_whom() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    account = _account()
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _die_with_the_tests() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGQUIT)


async def _ask(url: str, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(url, timeout=_PATIENCE)
    try:
        return [tuple(row) for row in await connection.fetch(statement, *values)]
    finally:
        await connection.close()


async def _run(url: str, script: str) -> None:
    connection = await asyncpg.connect(url, timeout=_PATIENCE)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


def _elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """In a thread with a loop of its own, since the caller may be inside one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()
