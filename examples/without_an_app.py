"""Retry and dead-lettering around a call of your own, with no worker: `python without_an_app.py`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from redrive import FailurePolicy, Message, Retry, execute_with_retry, fixed
from redrive.clock import new_id
from redrive.stores import open_store

calls = 0


async def handle(message: Message) -> None:
    global calls  # noqa: PLW0603  a small program
    calls += 1
    if calls < 3:  # noqa: PLR2004  as above
        raise TimeoutError("temporary failure")
    print("handled", message.data)


async def main() -> None:
    message = Message.create(id=new_id(), sent_at=datetime.now(UTC), queue="users", data={"user_id": 1})
    policy = FailurePolicy(Retry(attempts=5, delays=fixed("50ms")))
    store = open_store("sqlite:///redrive.db")
    try:
        succeeded = await execute_with_retry(message, handle, policy=policy, store=store)
    finally:
        await store.close()
    print("succeeded" if succeeded else "set apart", "after", calls, "calls")


if __name__ == "__main__":
    asyncio.run(main())
