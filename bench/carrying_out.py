"""One redrive run over a whole store, in this process; as a program, its peak memory in MiB is what it prints."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import uvloop

from redrive.clock import SystemClock
from redrive.dead_letter import Actor
from redrive.engine import RedriveEngine
from redrive.letter_query import LetterQuery
from redrive.run import Brakes, RunPlan, RunStatus
from redrive.stores import open_store
from redrive.transports import open_transport


async def carry_out(store_url: str, broker_url: str, queue: str, letters: int) -> float:
    """Seconds, from the creation of the run to its end. Every one of so many letters of the queue is sent."""
    clock = SystemClock()
    store, transport = open_store(store_url, clock=clock), open_transport(broker_url)
    engine = RedriveEngine(store=store, transport=transport, clock=clock, owner="bench")
    plan = RunPlan(selection=LetterQuery(queue=queue), brakes=Brakes(came_back=None))
    await store.runs(limit=1)  # both are connected, as whatever it is measured against is
    await transport.depths((queue,))
    began = time.monotonic()
    run = await engine.carry_out((await store.create_run(plan, by=Actor("bench"))).id)
    took = time.monotonic() - began
    assert run.status is RunStatus.DONE, run.why
    assert run.progress.sent == letters
    await transport.close()
    await store.close()
    return took


def peak_elsewhere(store_url: str, broker_url: str, queue: str, letters: int) -> float:
    """The peak memory of a process that does nothing else, in MiB."""
    program = [sys.executable, "-m", "bench.carrying_out", store_url, broker_url, queue, str(letters)]
    return float(subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    uvloop.run(carry_out(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
