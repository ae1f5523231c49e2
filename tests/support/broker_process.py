"""A process of its own on an embedded broker, for tests that share a file or kill somebody.

consume URL           takes messages and acks them until it gets one that says stop; prints the ids
hold URL COUNT        takes that many, says so, and waits to be killed
do URL STEP FAULTS    one step of a message's life with these failpoints armed; prints the error, if any
send URL              sends one message
twin URL COUNT        has the file open twice, sends that many, and as many again when told; prints the ids
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime

from redrive import faults
from redrive.clock import new_id
from redrive.message import Message
from redrive.transports import Delivery, Transport, open_transport

STOP = b"stop"


def a_message(body: bytes = b"{}") -> Message:
    return Message(id=new_id(), queue="orders", body=body, sent_at=datetime.now(UTC))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def take(transport: Transport, count: int) -> list[Delivery]:
    async with aclosing(transport.receive("orders", prefetch=count)) as deliveries:
        return [await anext(deliveries) for _ in range(count)]


async def consume(transport: Transport) -> None:
    seen: list[str] = []
    async with aclosing(transport.receive("orders", prefetch=5)) as deliveries:
        async for delivery in deliveries:
            if not seen:
                say("first")
                await asyncio.to_thread(sys.stdin.readline)
            await transport.ack(delivery)
            if delivery.message.body == STOP:
                break
            seen.append(delivery.message.id)
    say(json.dumps(seen))


async def hold(transport: Transport, count: str) -> None:
    await take(transport, int(count))
    say("taken")
    await asyncio.Event().wait()


async def send(transport: Transport) -> None:
    await transport.send(a_message())


async def twin(transport: Transport, url: str, count: int) -> None:
    second = open_transport(url)
    sent = [a_message() for _ in range(2 * count)]
    for place, message in enumerate(sent):
        if place == count:
            say("open")
            await asyncio.to_thread(sys.stdin.readline)
        await (transport, second)[place % 2].send(message)
    say(json.dumps([message.id for message in sent]))
    await asyncio.Event().wait()


async def do(transport: Transport, step: str, armed: str) -> None:
    delivery = None if step == "send" else (await take(transport, 1))[0]
    faults.arm(armed)
    try:
        if delivery is None:
            await transport.send(a_message())
        elif step == "ack":
            await transport.ack(delivery)
        elif step == "retry":
            await transport.retry(delivery, delivery.message, delay=0, trail=b"trail")
        else:
            await transport.release(delivery)
    except Exception as error:  # noqa: BLE001  whatever it is, the test wants to know
        say(type(error).__name__)
    faults.arm("")


async def main(command: str, url: str, *rest: str) -> None:
    commands: dict[str, Callable[..., Awaitable[None]]] = {
        "consume": consume,
        "hold": hold,
        "send": send,
        "twin": lambda first, count: twin(first, url, int(count)),
        "do": do,
    }
    transport = open_transport(url)
    try:
        await commands[command](transport, *rest)
    finally:
        await transport.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
