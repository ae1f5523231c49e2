"""`python -m support.servicebus QUEUE…`: the emulator in a process of its own, until its standard input ends.

It says one line of JSON: where it is, for the SDK and for Redrive.
"""

from __future__ import annotations

import asyncio
import json
import sys

from support.servicebus.emulator import emulated
from support.servicebus.entity import Rules


async def serve(queues: list[str]) -> None:
    async with emulated() as emulator:
        for queue in queues:
            emulator.namespace.queue(queue, Rules(max_deliveries=1000))
        sys.stdout.write(json.dumps({"sdk": emulator.connection_string, "url": emulator.url}) + "\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
