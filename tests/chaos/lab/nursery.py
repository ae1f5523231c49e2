"""A process that has imported everything and forks a child per order, so that a child starts in milliseconds.

It is told on standard input and answers on standard output, in JSON lines: the child's process id when it was
born, its exit code when it is dead. One child at a time; it never opens a file of the experiment itself.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any

from chaos.lab.roles import live

if TYPE_CHECKING:
    from collections.abc import Iterable

_ON_FIRST_USE = (
    "alembic.command",
    "asyncpg",
    "redrive.planning",
    "redrive.stores.postgres",
    "redrive.stores.sqlite",
    "redrive.stores.upgrade",
    "redrive.rabbitmq_wiring",
    "redrive.transports.embedded",
    "redrive.transports.rabbitmq.transport",
    "redrive.upkeep.journal",
    "redrive.upkeep.spool",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uuid_utils",
)
"""What the product imports when it is needed; here it is needed by every child."""


def main() -> None:
    _bring(_ON_FIRST_USE)
    for line in sys.stdin:
        order = json.loads(line)
        _bring(order["modules"])
        child = os.fork()
        if not child:
            _be_born(order)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.waitstatus_to_exitcode(status))


def _bring(modules: Iterable[str]) -> None:
    if missing := [each for each in modules if each not in sys.modules]:
        for module in missing:
            import_module(module)
        gc.collect()
        gc.freeze()  # no child looks through it again


def _be_born(order: dict[str, Any]) -> None:
    signal.alarm(order["oldest"])
    code = 1
    try:
        live(order)
        code = 0
    except BaseException:  # noqa: BLE001  the log tells it, and the exit code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)  # not back into the loop of the parent


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
