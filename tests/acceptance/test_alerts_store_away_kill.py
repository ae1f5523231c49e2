"""A process that tells of a store that is away, killed between its note and the outbox: told once, ended once."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from redrive.alerts.alert import Alert
from redrive.alerts.outbox import Outbox
from support.forked import Recorded

PROGRAM = """
import asyncio, sys
from redrive.alerts.outbox import Outbox
from redrive.alerts.rule import DEFAULTS, RuleKind
from redrive.alerts.store_watch import StoreWatch
from redrive.testing.clock import ManualClock

async def main(what):
    outbox, clock = Outbox("alerts.db"), ManualClock()
    watch = StoreWatch(
        DEFAULTS[RuleKind.STORE_DOWN], outbox, lambda alert: outbox.put(alert, ["ops"], clock.now()), clock=clock
    )
    if what == "away":
        await watch.failed()
        clock.advance(60)
        await watch.failed()
    else:
        await watch.answered()
    await outbox.close()

asyncio.run(main(sys.argv[1]))
"""


def process(folder: Path, what: str, faults: str = "") -> int:
    variables = {**os.environ, "REDRIVE_FAULTS": faults}
    ended = Recorded(PROGRAM, what, cwd=folder, env=variables).ended()
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
    return ended.returncode


def taken(folder: Path) -> list[Alert]:
    """What waits for the channel, which takes it."""

    async def take() -> list[Alert]:
        outbox, found = Outbox(folder / "alerts.db"), []
        now = datetime(2031, 1, 1, tzinfo=UTC)
        while (claimed := await outbox.claim("ops", now)) is not None:
            found.append(claimed.alert)
            await outbox.delivered("ops", claimed)
        await outbox.close()
        return found

    return asyncio.run(take())


def test_killed_behind_its_note_the_next_process_tells_it_once(tmp_path: Path) -> None:
    assert process(tmp_path, "away", "alerts.noted=kill9") == -signal.SIGKILL
    assert taken(tmp_path) == []

    for _ in range(2):
        assert process(tmp_path, "away") == 0
    (raised,) = taken(tmp_path)
    assert raised.is_raised


def test_killed_behind_the_end_the_next_process_tells_no_second_one(tmp_path: Path) -> None:
    assert process(tmp_path, "away") == 0
    (raised,) = taken(tmp_path)

    assert process(tmp_path, "back", "alerts.end_told=kill9") == -signal.SIGKILL
    (over,) = taken(tmp_path)
    for _ in range(2):
        assert process(tmp_path, "back") == 0
    assert (over.dedup_key, over.is_raised) == (raised.dedup_key, False)
    assert taken(tmp_path) == []
