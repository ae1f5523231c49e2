"""The whole API in this process: a real store, the embedded broker, tokens of every role, and a client."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx2

from redrive.access import EVERYWHERE, Grant, Role
from redrive.accounts import ApiToken, KeptToken
from redrive.api.app import create_app
from redrive.api.door import Door
from redrive.api.keeper import AccountKeeper
from redrive.api.metrics import Told
from redrive.api.sign_in import Reception
from redrive.clock import SystemClock
from redrive.dead_letter import Actor
from redrive.engine import RedriveEngine
from redrive.identity.bootstrap import Bootstrap
from redrive.identity.failures import Failures
from redrive.identity.passwords import Passwords
from redrive.identity.sessions import Sessions
from redrive.identity.tokens import Tokens, digest, new_token
from redrive.ledger import LedgerKey
from redrive.loaded import Loaded
from redrive.metrics_wiring import ServerMetrics
from redrive.privacy.maskers import Maskers
from redrive.run_policy import RunPolicy
from redrive.stores import open_store
from redrive.transports import open_transport
from support.dead_letters import dead

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from fastapi import FastAPI

    from redrive.clock import Clock
    from redrive.examining import Doctor
    from redrive.stores import Store
    from redrive.transports import Transport


@dataclass
class House:
    app: FastAPI
    store: Store
    transport: Transport
    clock: Clock
    client: httpx2.AsyncClient
    _tokens: dict[tuple[Any, ...], str] = field(default_factory=dict)

    async def token(self, *roles: Role, queues: tuple[str, ...] = EVERYWHERE, name: str = "") -> str:
        """One that has these roles; the same ones again are the same token."""
        key = (name, roles, queues)
        if key not in self._tokens:
            self._tokens[key] = await self._made(roles, queues, name or "-".join(roles) or "nobody")
        return self._tokens[key]

    async def _made(self, roles: tuple[Role, ...], queues: tuple[str, ...], name: str) -> str:
        shown, now = new_token(), self.clock.now()
        token = ApiToken(
            id=shown.id,
            name=name,
            grants=tuple(Grant(role, queues) for role in roles),
            created_at=now,
            created_by="test",
            expires_at=now + timedelta(days=1),
        )
        await self.store.add_token(KeptToken(token, digest(shown.secret)), by=Actor("test"))
        return shown.text

    async def ask(
        self, method: str, path: str, *roles: Role, queues: tuple[str, ...] = EVERYWHERE, **more: Any
    ) -> httpx2.Response:
        """With a token of these roles; without any, as nobody."""
        headers = dict(more.pop("headers", {}))
        if roles:
            headers["authorization"] = f"Bearer {await self.token(*roles, queues=queues)}"
        return await self.client.request(method, f"/api/v1{path}", headers=headers, **more)

    async def letter(self, queue: str = "orders", **fields: Any) -> str:
        """The id of a new letter of that queue."""
        letter_id, _ = await self.store.record(dead(queue=queue, **fields))
        return letter_id

    async def carry_out(self) -> None:
        """Every run there is."""
        engine = RedriveEngine(store=self.store, transport=self.transport, clock=self.clock, owner="test")
        for run in await self.store.runs(active=True):
            await engine.carry_out(run.id)


@asynccontextmanager
async def open_house(
    folder: Path,
    *,
    store_url: str | None = None,
    policy: RunPolicy | None = None,
    masks: Maskers | None = None,
    loaded: Loaded | None = None,
    doctor: Doctor | None = None,
    read_only: bool = False,
    root_path: str = "",
    audited: bool = False,
    metrics_token: str | None = None,
    **how: Any,
) -> AsyncIterator[House]:
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        options = {"ledger_key": LedgerKey(b"of these tests alone")} if audited else {}
        store = open_store(store_url or f"sqlite:///{folder}/store.db", **options)
        closing.push_async_callback(store.close)
        transport = open_transport(f"embedded:///{folder}/broker.db")
        closing.push_async_callback(transport.close)
        sessions, failures = Sessions(store, clock), Failures(clock)
        reception = Reception(
            sessions=sessions,
            passwords=Passwords(store),
            bootstrap=Bootstrap(store, clock),
            failures=failures,
            starts=failures,
        )
        keeper = AccountKeeper(tokens=Tokens(store, clock), sessions=sessions, failures=failures)
        door = Door(
            store=store,
            transport=transport,
            clock=clock,
            policy=policy or RunPolicy(),
            keeper=keeper,
            masks=masks or Maskers(),
            loaded=loaded,
            doctor=doctor,
            read_only=read_only,
        )
        told = Told(ServerMetrics(store, clock).text, token=metrics_token)
        app = create_app(door, reception=reception, checks={"store": store.has_accounts}, told=told, **how)
        client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app, raise_app_exceptions=False, root_path=root_path),
            base_url="http://redrive.test",
        )
        await closing.enter_async_context(client)
        yield House(app, store, transport, clock, client)
