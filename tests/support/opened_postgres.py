"""A PostgreSQL store that is closed behind the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redrive.stores.postgres import PostgresStore


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, **options)
    try:
        yield store
    finally:
        await store.close()
