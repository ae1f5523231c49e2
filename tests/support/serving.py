"""`redrive serve` in a process of its own, on a free port, with tokens for it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from redrive.access import Grant, Role
from redrive.accounts import ApiToken, KeptToken
from redrive.cli.invocation import actor
from redrive.clock import SystemClock
from redrive.dead_letter import Actor
from redrive.identity.tokens import digest, new_token
from redrive.stores import open_store
from support.dead_letters import dead
from support.patience import until_now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.desk import Desk

_URL = re.compile(r"serves (https?://\S+)/api/v1")
_WITHIN = 60.0


@dataclass(frozen=True)
class Served:
    folder: Path
    url: str
    """Without the API's prefix."""
    token: str = ""
    """Of somebody who may do everything."""
    tokens: Mapping[Role, str] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """On stderr."""
        return _said(self.folder)


@contextmanager
def serving(desk: Desk, *options: str) -> Iterator[Served]:
    """Over the desk's own files. The token is named like whoever runs the tests."""
    made = desk.redrive("tokens", "create", actor(), "--grant", "admin")
    with _running(desk.folder, *options) as url:
        yield Served(desk.folder, url, made.out.strip())


@contextmanager
def serving_at(desk: Desk, port: int) -> Iterator[Served]:
    """As `serving`, without a token, on a port where it can be started again when it was stopped."""
    with _running(desk.folder, "--port", str(port)) as url:
        yield Served(desk.folder, url)


@contextmanager
def served(folder: Path, *options: str, letters: int = 0) -> Iterator[Served]:
    """Over a store of its own with so many letters, for clients that make mistakes all the time."""
    tokens = asyncio.run(_prepared(folder, letters))
    given = {"REDRIVE_ACCESS__FAILED_ATTEMPTS": "1000000", "REDRIVE_SERVER__CONCURRENCY": "100"}
    with _running(folder, *options, **given) as url:
        yield Served(folder, url, tokens[Role.ADMIN], tokens)


@contextmanager
def _running(folder: Path, *options: str, **given: str) -> Iterator[str]:
    """Its URL. It has to end well."""
    command = [sys.executable, "-c", "from redrive.cli.main import main; main()", "serve", "--port", "0", *options]
    others = {name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, stderr=said, env=others | given)
    try:
        until_now(lambda: process.poll() is not None or _URL.search(_said(folder)), within=_WITHIN)
        found = _URL.search(_said(folder))
        assert found is not None, _said(folder)
        yield found[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(_WITHIN) == 0, _said(folder)
    finally:
        process.kill()
        process.wait()


def _said(folder: Path) -> str:
    return (folder / "said").read_text()


async def _prepared(folder: Path, letters: int) -> dict[Role, str]:
    store, now, found = open_store(f"sqlite:///{folder}/redrive.db"), SystemClock().now(), dict[Role, str]()
    for role in Role:
        shown = new_token()
        token = ApiToken(
            id=shown.id,
            name=role,
            grants=(Grant(role),),
            created_at=now,
            created_by="test",
            expires_at=now + timedelta(days=1),
        )
        await store.add_token(KeptToken(token, digest(shown.secret)), by=Actor("test"))
        found[role] = shown.text
    for _ in range(letters):
        await store.record(dead())
    await store.close()
    return found
